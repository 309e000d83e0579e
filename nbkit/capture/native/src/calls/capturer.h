// opcapture's look at the ops that torch's observer reports: what each reads from before it runs, and what it leaves after.
// Python (nbkit/capture/operators/observed_calls.py) makes the first record of each kind of calls; those of calls that differ
// from it in values alone are made here from its text.
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

#include "call_key.h"
#include "../checker.h"
#include "contents.h"
#include "known_calls.h"
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
  std::unique_ptr<CallKey> key;   // of a usual call
  KnownCalls* known = nullptr;
  c10::SmallVector<Name, 8> names;
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
    const bool has_key = call.key != nullptr && ends(call, results);
    const bool is_settled = call.known != nullptr && has_key && tried(call, [&] { return is_ended(call); });
    if (!is_settled || pending_.is_due(start)) {
      hand_over();
    }
    spent_.emplace_back(start, now_ns());
    if (!is_settled) {
      begin_again(call);
      const py::object learned = after_(call.taken, shown(results));
      if (!learned.is_none() && has_key) {
        call.traits.learn(call.known, call.key->begun, call.key->ended, learned);
      }
    }
    if (call.key != nullptr) {
      call.key->clear();
      spare_keys_.push_back(std::move(call.key));
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

  // Lets Python look at a call that was known when it began.
  void begin_again(CapturedCall& call) {
    if (call.known == nullptr) {
      return;
    }
    std::vector<std::string> names;
    for (const Name name : call.names) {
      names.push_back(contents_->text_of(name));
    }
    call.taken = begun_again_(call.function, arguments_of(call), py::cast(names), call.known->spans, call.number);
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
    if (spare_keys_.empty()) {
      call.key = std::make_unique<CallKey>();
    } else {
      call.key = std::move(spare_keys_.back());
      spare_keys_.pop_back();
    }
    CallKey& key = *call.key;
    key.begun = normal_;  // a record tells how what is set differs from it
    append_state(key.begun);
    for (const c10::IValue& argument : call.arguments) {
      key.add(argument);
    }
    if (!key.is_usual) {
      call.key.reset();
      return false;
    }
    key.add_sizes(0, call.traits.takes_whole, *contents_);
    const auto found = call.traits.known.find(key.begun);
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
  bool is_ended(CapturedCall& call) {
    const auto found = call.known->by_end.find(call.key->ended);
    if (found == call.known->by_end.end()) {
      return false;
    }
    name_all(call, found->second.after);
    encode_referenced(call.names);  // before a line is begun: Python may let other threads run
    pending_.add(ops_->count(), call.traits.name, call.number, [&](std::string& text) {
      found->second.append_to(text, call.number, call.names, [&](Name name) { add_name(text, name); });
    });
    return true;
  }

  // Has the JSON of names that are no numbers; a parameter may have any.
  void encode_referenced(c10::ArrayRef<Name> names) {
    for (const Name name : names) {
      while (static_cast<Name>(encoded_.size()) < -name) {
        const size_t place = encoded_.size();
        std::string text = encode_(contents_->text_of(-1 - static_cast<Name>(place))).cast<std::string>();
        if (encoded_.size() == place) {
          encoded_.push_back(std::move(text));
        }
      }
    }
  }

  void add_name(std::string& text, Name name) const {
    if (name < 0) {
      text += encoded_[static_cast<size_t>(-1 - name)];
    } else {
      text.append(1, '"').append(std::to_string(name)).append(1, '"');
    }
  }

  void name_all(CapturedCall& call, const NamedParts& parts) {
    for (const auto& [storage, part] : parts) {
      call.names.push_back(contents_->name(call.key->storages[storage], part));
    }
  }

  // Completes the key of a call that has run; returns false where Python has to look at it.
  bool ends(CapturedCall& call, c10::ArrayRef<c10::IValue> results) {
    CallKey& key = *call.key;
    for (const size_t index : call.traits.written) {
      each_tensor(call.arguments[index], [&](const at::Tensor& tensor) {
        if (!each_part(tensor, [&](const at::Tensor& part) { contents_->changed(part.storage()); })) {
          contents_->changed(tensor.storage());
        }
      });
    }
    const size_t first = key.storages.size();
    key.end();
    for (const c10::IValue& result : results) {
      key.add(result);
    }
    for (const size_t index : call.traits.written) {
      key.add(call.arguments[index]);
    }
    key.add_sizes(first, call.traits.takes_whole, *contents_);
    return key.is_usual;
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
  std::vector<std::unique_ptr<CallKey>> spare_keys_;
  std::vector<std::string> encoded_;  // names below 0, from -1 down
  const std::thread::id thread_ = std::this_thread::get_id();
  bool asks_each_ = true;
  Key normal_;  // what was set when the recording began
  std::vector<Span> spent_;
};

}  // namespace nbkit
