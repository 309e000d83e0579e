// opcapture's look at the ops that torch's observer reports: what each reads from before it runs, and what it leaves after.
// Python (nbkit/capture/operators/observed_calls.py) makes the first record of each kind of calls; those of calls that differ
// from it in values alone are made here from its text.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "call_key.h"
#include "../checker.h"
#include "contents.h"
#include "known_calls.h"
#include "pending_records.h"
#include "../host.h"
#include "../log.h"
#include "../python_call.h"

namespace nbkit {

// One call between its two reports.
struct CapturedCall {
  using Arguments = c10::SmallVector<c10::IValue, 12>;
  CapturedCall(const c10::OperatorHandle& op, const py::object& function, CaptureTraits& traits)
      : op(op), function(function), traits(traits) {}

  const c10::OperatorHandle& op;
  const py::object& function;
  CaptureTraits& traits;
  Arguments arguments;
  py::object taken = py::none();  // what Python keeps of it meanwhile; None of one that is left alone, or known
  std::optional<CallKey> begun;   // of a usual call
  KnownCalls* known = nullptr;
  std::vector<std::string> names;
  int64_t number = 0;
};

class Capturer {
 public:
  explicit Capturer(const py::object& calls)
      : contents_(calls.attr("contents").cast<std::shared_ptr<Contents>>()),
        describe_(calls.attr("describe")),
        before_(calls.attr("before")),
        after_(calls.attr("after")),
        raised_(calls.attr("raised")),
        begun_again_(calls.attr("begun_again")),
        trouble_(calls.attr("trouble")),
        encode_(calls.attr("encode")),
        pending_(calls.attr("add_lines")),
        numbers_(calls.attr("numbers")),
        ops_(calls.attr("ops").cast<std::shared_ptr<OpLog>>()) {
    append_state(normal_);
  }

  // With what is known of its calls: one recording learns for the next.
  CaptureTraits& traits_of(const py::object& function) {
    static auto& all = *new std::unordered_map<PyObject*, CaptureTraits>();
    auto found = all.find(function.ptr());
    if (found == all.end()) {
      const auto [is_uninitialised, is_usual, takes_whole, written, name] =
          describe_(function).cast<std::tuple<bool, bool, bool, std::vector<size_t>, py::object>>();
      found = all.emplace(function.ptr(), CaptureTraits{is_uninitialised, is_usual, takes_whole,
                                                            written, name, {}}).first;
    }
    return found->second;
  }

  // While Python has something to do at each call, such as to choose it, all calls are its.
  void ask_each(bool asks) { asks_each_ = asks; }

  void begin(CapturedCall& call, c10::ArrayRef<const c10::IValue> arguments) {
    call.arguments.append(arguments.end() - call.op.schema().arguments().size(), arguments.end());
    if (!asks_each_ && call.traits.is_usual && is_of_the_step()) {
      const int64_t start = now_ns();
      const bool is_settled = tried(call, [&] { return is_begun(call); });
      spent_.emplace_back(start, now_ns());
      if (is_settled) {
        return;
      }
    }
    hand_over();
    const py::tuple python = arguments_of(call);
    call.taken = before_(call.function, python[0], python[1]);
  }

  void end(CapturedCall& call, c10::ArrayRef<c10::IValue> results) {
    if (call.known == nullptr && call.taken.is_none()) {
      return;
    }
    const int64_t start = now_ns();
    std::optional<Key> key = call.begun.has_value() ? key_of_end(call, results) : std::nullopt;
    const bool is_settled = call.known != nullptr && key.has_value() && tried(call, [&] { return is_ended(call, *key); });
    if (!is_settled || pending_.is_due(start)) {
      hand_over();
    }
    spent_.emplace_back(start, now_ns());
    if (is_settled) {
      return;
    }
    if (call.known != nullptr) {
      call.taken = begun_again_(call.function, arguments_of(call), py::cast(call.names), call.known->spans, call.number);
    }
    const py::object learned = after_(call.taken, shown(results));
    if (!learned.is_none() && key.has_value()) {
      call.traits.learn(call.known, call.begun->key, std::move(*key), learned);
    }
  }

  void fail(CapturedCall& call) {
    const py::error_scope raised;
    hand_over();
    if (call.known != nullptr) {
      call.taken = begun_again_(call.function, arguments_of(call), py::cast(call.names), call.known->spans, call.number);
    }
    if (!call.taken.is_none()) {
      raised_(call.taken);
    }
  }

  void tell_each(bool tells) { pending_.tell_each(tells); }

  // Before Python adds another one.
  void hand_over() { pending_.hand_over(); }

  // Start and end in ns of each span spent with it, as bytes.
  py::bytes spent() const { return as_bytes(spent_); }

 private:
  // A value as Python sees it. With objects of their own for its tensors autograd would no longer add gradients in place,
  // and nn.Parameter() would refuse what detach() returned.
  static c10::IValue shown(const c10::IValue& value) {
    if (value.isTensor()) {
      return alias_of(value.toTensor());
    }
    if (!value.isTensorList()) {
      return value;
    }
    c10::List<at::Tensor> tensors;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      tensors.push_back(alias_of(tensor));
    }
    return tensors;
  }

  static py::object shown(c10::ArrayRef<c10::IValue> results) {
    std::vector<c10::IValue> seen;
    for (const c10::IValue& result : results) {
      seen.push_back(shown(result));
    }
    return returned(seen);
  }

  // Another tensor with the same memory; itself where Python knows it, or has to.
  static at::Tensor alias_of(const at::Tensor& tensor) {
    if (!tensor.defined() || !has_plain_memory(tensor) || object_of(tensor) != nullptr) {
      return tensor;
    }
    const c10::impl::ExcludeDispatchKeyGuard in_no_mode(c10::DispatchKey::Python);
    return at::Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), false));
  }

  static py::tuple arguments_of(const CapturedCall& call) {
    const auto& written = call.traits.written;  // what is written to is a result, too: the same tensor
    CapturedCall::Arguments seen;
    for (size_t index = 0; index < call.arguments.size(); ++index) {
      const bool is_written = std::find(written.begin(), written.end(), index) != written.end();
      seen.push_back(is_written ? call.arguments[index] : shown(call.arguments[index]));
    }
    const PythonCall python(call.op.schema(), seen);
    return py::make_tuple(python.args, python.kwargs);
  }

  // What runs in another thread without a node of autograd's is part of a collective.
  bool is_of_the_step() const {
    return std::this_thread::get_id() == thread_ || torch::autograd::get_current_node() != nullptr;
  }

  // What cannot be stored is told to Python, and the call left alone.
  template <typename Work>
  bool tried(CapturedCall& call, const Work& work) {
    try {
      return work();
    } catch (py::error_already_set& error) {
      call.known = nullptr;
      trouble_(call.function, error.value());
      return true;
    }
  }

  // Whether calls that begin as this one are known: then its contents are named.
  bool is_begun(CapturedCall& call) {
    CallKey& key = call.begun.emplace();
    key.key = normal_;  // a record tells how what is set differs from it
    append_state(key.key);
    for (const c10::IValue& argument : call.arguments) {
      key.add(argument);
    }
    if (!key.is_usual) {
      call.begun.reset();
      return false;
    }
    key.add_sizes(0, call.traits.takes_whole, *contents_);
    const auto found = call.traits.known.find(key.key);
    if (found == call.traits.known.end()) {
      return false;
    }
    call.number = next_number(call.traits.name);
    for (const at::Generator& generator : key.generators) {
      call.names.push_back(contents_->put_state(generator));
    }
    if (found->second.draws) {
      call.names.push_back(contents_->put_state(at::detail::getDefaultCPUGenerator()));
    }
    name_all(call, found->second.before);
    call.known = &found->second;
    return true;
  }

  // Whether calls that end as this one are known: then its record is added.
  bool is_ended(CapturedCall& call, const Key& key) {
    const auto found = call.known->by_end.find(key);
    if (found == call.known->by_end.end()) {
      return false;
    }
    name_all(call, found->second.after);
    pending_.add(found->second.with(call.number, call.names, encode_), ops_->count(), call.traits.name, call.number);
    return true;
  }

  void name_all(CapturedCall& call, const NamedParts& parts) {
    for (const auto& [storage, part] : parts) {
      call.names.push_back(contents_->name(call.begun->storages[storage], part));
    }
  }

  // What is to be known of a call that has run; none where Python has to look at it.
  std::optional<Key> key_of_end(CapturedCall& call, c10::ArrayRef<c10::IValue> results) {
    CallKey& key = *call.begun;
    for (const size_t index : call.traits.written) {
      each_tensor(call.arguments[index], [&](const at::Tensor& tensor) {
        if (!each_part(tensor, [&](const at::Tensor& part) { contents_->changed(part.storage()); })) {
          contents_->changed(tensor.storage());
        }
      });
    }
    const size_t first = key.storages.size();
    Key begun = std::move(key.key);
    key.key = {};
    key.key.reserve(CallKey::usual_length);
    for (const c10::IValue& result : results) {
      key.add(result);
    }
    for (const size_t index : call.traits.written) {
      key.add(call.arguments[index]);
    }
    key.add_sizes(first, call.traits.takes_whole, *contents_);
    std::swap(begun, key.key);
    return key.is_usual ? std::optional(std::move(begun)) : std::nullopt;
  }

  // Of the calls of an op that are chosen from, as CallScope counts them.
  int64_t next_number(const py::object& name) {
    PyObject* before = PyDict_GetItemWithError(numbers_.ptr(), name.ptr());
    const int64_t number = before == nullptr ? 0 : PyLong_AsLongLong(before);
    if (PyDict_SetItem(numbers_.ptr(), name.ptr(), py::int_(number + 1).ptr()) != 0) {
      throw py::error_already_set();
    }
    return number;
  }

  std::shared_ptr<Contents> contents_;
  py::object describe_, before_, after_, raised_, begun_again_, trouble_, encode_;
  PendingRecords pending_;
  py::object numbers_;
  std::shared_ptr<OpLog> ops_;
  const std::thread::id thread_ = std::this_thread::get_id();
  bool asks_each_ = true;
  Key normal_;  // what was set when the recording began
  std::vector<Span> spent_;
};

}  // namespace nbkit
