// opcapture's look at the ops that torch's observer reports: what each reads from before it runs, and what it leaves after.
// Calls that are out of the usual are Python's (nbkit/capture/operators/observed_calls.py).
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "call_record.h"
#include "call_state.h"
#include "contents.h"
#include "pending_records.h"
#include "shown_values.h"
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
  std::unique_ptr<CallRecord> record;  // of a usual call
  const std::string* set = nullptr;    // what was set when it began
  c10::SmallVector<Name, 2> states;    // of its generators
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
        argument_texts_(calls.attr("argument_texts")),
        pending_(calls.attr("add_lines")),
        numbers_(calls.attr("numbers")),
        ops_(calls.attr("ops").cast<std::shared_ptr<OpLog>>()),
        state_(calls.attr("state_text")) {}

  // With the texts of its arguments: one recording keeps them for the next.
  CaptureTraits& traits_of(const py::object& function) {
    static auto& all = *new std::unordered_map<PyObject*, CaptureTraits>();
    auto found = all.find(function.ptr());
    if (found == all.end()) {
      auto [is_uninitialised, is_usual, takes_whole, is_random, overwrites, written, name] =
          describe_(function).cast<std::tuple<bool, bool, bool, bool, bool, std::vector<size_t>, py::object>>();
      auto encoded = encode_(name).cast<std::string>();
      found = all.emplace(function.ptr(), CaptureTraits{is_uninitialised, is_usual, takes_whole, is_random, overwrites,
                                                        std::move(written), name, std::move(encoded), {}}).first;
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
    if (call.record == nullptr && call.taken.is_none()) {
      return;
    }
    const int64_t start = now_ns();
    const bool is_settled = call.record != nullptr && tried(call, [&] { return is_ended(call, results); });
    if (!is_settled || pending_.is_due(start)) {
      hand_over();
    }
    spent_.emplace_back(start, now_ns());
    if (!is_settled) {
      begin_again(call);
      after_(call.taken, shown(results));
    }
    if (call.record != nullptr) {
      call.record->clear();
      spare_.push_back(std::move(call.record));
    }
  }

  void fail(CapturedCall& call) {
    const py::error_scope raised;
    hand_over();
    begin_again(call);
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

  // Lets Python look at a call that began here.
  void begin_again(CapturedCall& call) {
    if (call.record == nullptr) {
      return;
    }
    const auto& all = call.record->storages.all;
    std::vector<std::string> names;
    for (const Name state : call.states) {
      names.push_back(contents_->text_of(state));
    }
    py::list spans;
    for (size_t number = 0; number < call.record->input_storages; ++number) {
      spans.append(py::make_tuple(all[number].span.start, all[number].span.count));
      if (all[number].before.has_value()) {
        names.push_back(contents_->text_of(*all[number].before));
      }
    }
    call.taken = begun_again_(call.function, arguments_of(call), py::cast(names), py::tuple(spans), call.number);
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
      call.record.reset();
      if (is_interrupt(error)) {
        PyErr_SetInterrupt();
      } else {
        trouble_(call.function, error.value());
      }
      return true;
    }
  }

  // Whether a call is a usual one: then its contents are named.
  bool is_begun(CapturedCall& call) {
    auto record = spare_.empty() ? std::make_unique<CallRecord>() : std::move(spare_.back());
    if (!spare_.empty()) {
      spare_.pop_back();
    }
    record->begin(call.arguments, call.traits, *contents_, [&](auto& tensor) { return is_one(tensor, record->written); });
    const bool draws = call.traits.is_random && record->generators.empty();
    if (!record->is_usual || (draws && !draws_on_cpu(call, *record))) {
      return false;
    }
    call.set = &state_.now();
    call.number = next_number(call.traits.name);
    for (const at::Generator& generator : record->generators) {
      call.states.push_back(contents_->put_state(generator));
    }
    if (draws) {
      call.states.push_back(contents_->put_state(at::detail::getDefaultCPUGenerator()));
    }
    if (!call.traits.takes_whole || record->has_parts) {
      const auto unread = call.traits.overwrites ? record->unread() : Flags(record->input_storages, false);
      record->storages.name_before(unread, *contents_);
    }
    call.record = std::move(record);
    return true;
  }

  // Whether a call is still a usual one: then its record is added.
  bool is_ended(CapturedCall& call, c10::ArrayRef<c10::IValue> results) {
    CallRecord& record = *call.record;
    for (const at::Tensor* tensor : record.written) {
      each_storage(*tensor, [&](const c10::Storage& storage) { contents_->changed(storage); });
    }
    record.end(results, call.traits, *contents_, [&](auto& tensor) { return is_one(tensor, record.written); });
    if (!record.is_usual) {
      return false;
    }
    name_after(call);
    const ArgumentsText& arguments = call.traits.arguments_of(
        record.key, [&] { return argument_texts_(*arguments_of(call)).cast<std::vector<std::string>>(); });
    const bool is_whole = arguments.tensors() == record.inputs.size();
    if (is_whole) {
      pending_.add(ops_->count(), call.traits.name, call.number, [&](std::string& text) {
        record.append_to(text, call.traits, call.number, *call.set, arguments, call.states,
                         [&](Name name) { contents_->append_to(text, name); });
      });
    }
    return is_whole;
  }

  // Whether Python sees one object wherever a tensor is given and returned: it does not know others.
  static bool is_one(const at::Tensor& tensor, const std::vector<const at::Tensor*>& written) {
    return object_of(tensor) != nullptr || !has_plain_memory(tensor) ||
           std::any_of(written.begin(), written.end(), [&](auto* one) { return one->is_same(tensor); });
  }

  static bool draws_on_cpu(const CapturedCall& call, const CallRecord& record) {
    const auto& given = call.arguments;
    const auto device = std::find_if(given.begin(), given.end(), [](auto& argument) { return argument.isDevice(); });
    return device != given.end() ? device->toDevice().is_cpu()
                                 : record.given().empty() || record.given()[0]->device().is_cpu();
  }

  void name_after(const CapturedCall& call) {
    CallRecord& record = *call.record;
    if (call.traits.is_uninitialised) {
      return;
    }
    const bool has_fresh = record.storages.all.size() > record.input_storages;
    if (has_fresh && call.traits.takes_whole && !record.has_parts) {  // a view that turned out to be a copy
      record.storages.name_before(Flags(record.input_storages, false), *contents_);
    }
    Flags is_changed(record.input_storages, false);
    is_changed.resize(record.storages.all.size(), true);
    for (const at::Tensor* tensor : record.written) {
      record.storages.each_number(*tensor, [&](size_t number) { is_changed[number] = true; });
    }
    record.storages.name_after(is_changed, *contents_);
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
  py::object describe_, before_, after_, raised_, begun_again_, trouble_, encode_, argument_texts_;
  PendingRecords pending_;
  py::object numbers_;
  std::shared_ptr<OpLog> ops_;
  std::vector<std::unique_ptr<CallRecord>> spare_;
  const std::thread::id thread_ = std::this_thread::get_id();
  bool asks_each_ = true;
  CallState state_;
  std::vector<Span> spent_;
};

}  // namespace nbkit
