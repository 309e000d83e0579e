// Rows of ops in the log of a Recording (nbkit/capture/raw/recording.py), as the Python recorder writes them.
#pragma once

#include <ATen/SequenceNumber.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "host.h"
#include "log.h"
#include "op_traits.h"
#include "tensors.h"
#include "thread_slots.h"

namespace nbkit {

struct Input {
  const at::Tensor* tensor;
  bool is_result;
};
using Inputs = c10::SmallVector<Input, 16>;

// Numbers of tensors.
using Numbers = c10::SmallVector<int64_t, 4>;

// One call: what is known of it before it runs. Fields as in OpRecord, nbkit/capture/raw/recording.py.
struct Call {
  py::object context, node_type, location, arguments;
  NumberLog* tensors = nullptr;  // of its thread
  Numbers inputs, results;       // results: those of its inputs that it writes to and returns
  uint64_t sequence = 0;
  int64_t parent = -1, node = -1, start = 0, end = 0;
  bool has_raised = false;
  int64_t slot = -1;  // its row, where it took one when it began; else it is added at the end
  bool makes_parameters = false;  // nn.Parameter() takes the result of a detach() as it is
};

class Rows {
 public:
  explicit Rows(py::object recording)
      : recording_(std::move(recording)),
        main_(recording_.attr("main")),
        slots_(main_),
        main_tensors_(main_.attr("tensors").cast<std::shared_ptr<NumberLog>>()),
        ops_(recording_.attr("ops").cast<std::shared_ptr<OpLog>>()),
        number_in_python_(recording_.attr("registry").attr("number")),
        tensors_(recording_.attr("registry").attr("tensors").cast<std::shared_ptr<Tensors>>()) {}

 protected:
  Call begin(const Inputs& inputs) {
    Call call;
    call.context = slots_.context.of(main_);
    call.parent = slots_.parent_of(main_);
    call.tensors = main_tensors_.get();
    guarded("place not described", [&] { is_main_thread() ? stand(call, main_function_thread_) : stand_elsewhere(call); });
    const bool is_known = guarded("inputs not described", [&] {
      for (const Input& input : inputs) {
        call.inputs.push_back(number(*input.tensor, false));
        if (input.is_result) {
          call.results.push_back(call.inputs.back());
        }
      }
    });
    if (!is_known) {
      call.inputs.clear();
      call.results.clear();
    }
    call.sequence = at::sequence_number::peek();
    return call;
  }

  bool is_main_thread() const { return std::this_thread::get_id() == main_thread_; }

  // In another thread: one of autograd's for a device, which runs nodes of the main thread, or of the step's where all
  // threads are recorded.
  void stand_elsewhere(Call& call) {
    const py::object thread = recording_.attr("thread")();
    call.context = slots_.context.of(thread);
    call.parent = slots_.parent_of(thread);
    call.tensors = thread.attr("tensors").cast<std::shared_ptr<NumberLog>>().get();  // the thread's state holds it
    const bool is_of_user = thread.attr("is_of_user").cast<bool>();
    stand(call, is_of_user ? at::RecordFunction::currentThreadId() : main_function_thread_);
  }

  // Where the call stands: its autograd node and source line, as the Python recorder finds them. Each thread numbers its
  // nodes anew: the number of one that another thread than `maker` has made says nothing.
  void stand(Call& call, uint64_t maker) {
    const auto node = torch::autograd::get_current_node();
    if (node) {
      const NodeKind kind = kind_of(*node);
      call.node_type = kind.type;
      if (kind.accumulates) {
        call.node = number(static_cast<const torch::autograd::AccumulateGrad&>(*node).variable, false);
      } else if (node->thread_id() == maker) {
        call.node = static_cast<int64_t>(node->sequence_nr());
      }
      call.location = node_location();
    } else if (call.parent < 0) {
      call.location = place_of_op();
    }
  }

  int64_t number(const at::Tensor& tensor, bool fresh, bool by_storage = false) {
    return is_plain(tensor) ? tensors_->number(tensor, fresh, by_storage)
                            : number_in_python_(tensor, fresh).cast<int64_t>();
  }

  void finish(const OpTraits& traits, Call& call, c10::ArrayRef<c10::IValue> stack) {
    const bool is_known = guarded("outputs not described", [&] {
      for (size_t index = stack.size() - traits.returns; index < stack.size(); ++index) {
        note(call, stack[index]);
      }
    });
    if (!is_known) {
      call.results.clear();
    }
    write(traits, call);
  }

  void note(Call& call, const c10::IValue& value) {
    if (value.isTensor()) {
      if (value.toTensor().defined()) {
        call.results.push_back(number(value.toTensor(), true, call.makes_parameters));
      }
    } else if (value.isList()) {
      for (const c10::IValue& item : value.toListRef()) {
        note(call, item);
      }
    }
  }

  void fail(const OpTraits& traits, Call& call) {
    py::error_scope raised;  // an error of Python's may be on its way
    call.end = now_ns();
    call.results.clear();
    call.has_raised = true;
    guarded("error not described", [&] { note_failed(call.slot < 0 ? ops_->count() : call.slot); });
    write(traits, call);
  }

  // Of calls inside each other the innermost failed, which ends first and stands last; one before it raised an error that
  // was caught.
  void note_failed(int64_t slot) {
    const py::object before = recording_.attr("failed_slot");
    if (before.is_none() || before.cast<int64_t>() < slot) {
      recording_.attr("failed_slot") = slot;
    }
  }

  // Gives the call its row, so that calls inside of it stand after it, and the call around it as parent where that began
  // after the API call that is.
  void take_slot(Call& call, int64_t around) {
    call.parent = std::max(call.parent, around);
    call.slot = static_cast<int64_t>(ops_->reserve());
  }

  // All tensors of a row stand together, though others may have been recorded since it began.
  void write(const OpTraits& traits, Call& call) {
    const auto first = static_cast<int64_t>(call.tensors->count());
    for (const Numbers* numbers : {&call.inputs, &call.results}) {
      for (const int64_t number : *numbers) {
        call.tensors->add({{}, {number}});
      }
    }
    const size_t row = call.slot < 0 ? ops_->reserve() : static_cast<size_t>(call.slot);
    ops_->at(row) = {{traits.function, std::move(call.context), std::move(call.node_type), std::move(call.location),
                      std::move(call.arguments)},
                     {call.parent, static_cast<int64_t>(call.sequence), call.node, call.start, call.end, first,
                      static_cast<int64_t>(call.inputs.size()), call.has_raised ? -1 : static_cast<int64_t>(call.results.size())}};
  }

  // The recorder's own trouble must never become the step's.
  template <typename Work>
  bool guarded(const char* what, const Work& work) {
    try {
      work();
      return true;
    } catch (const std::exception& error) {
      bool is_interrupted = is_interrupt(error);
      PyErr_Clear();
      try {
        recording_.attr("skip")(what);
      } catch (const std::exception& other) {
        is_interrupted = is_interrupted || is_interrupt(other);
        PyErr_Clear();
      }
      if (is_interrupted) {
        PyErr_SetInterrupt();
      }
      return false;
    }
  }

  py::object recording_, main_;
  ThreadSlots slots_;
  std::shared_ptr<NumberLog> main_tensors_;
  std::shared_ptr<OpLog> ops_;
  const std::thread::id main_thread_ = std::this_thread::get_id();
  const uint64_t main_function_thread_ = at::RecordFunction::currentThreadId();
  py::object number_in_python_;
  std::shared_ptr<Tensors> tensors_;
};

}  // namespace nbkit
