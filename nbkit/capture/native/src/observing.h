// The callbacks that torch's observer calls, and which recordings they are for.
#pragma once

#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "host.h"
#include "observed.h"

namespace nbkit {

// Recordings inside each other have an observer each. torch passes functions alone, so that each has functions of its own.
constexpr size_t most_observed = 8;
struct Slot {
  std::shared_ptr<Observed> observed;
  bool takes_inner = false;
  at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
};
inline std::array<Slot, most_observed>& slots() {
  static auto& all = *new std::array<Slot, most_observed>();
  return all;
}

// What we ask is no work of the step, for no recording. (at::RecordFunctionGuard would do, but at each op it makes torch
// build its lists of observers anew.)
struct OwnWork {
  static inline thread_local int depth = 0;
  OwnWork() { ++depth; }
  ~OwnWork() { --depth; }
  OwnWork(const OwnWork&) = delete;
};

// Where a thread stands in a recording: how many rows are around it, and whether what it runs is left out, as
// torch.compile's own work is.
struct Standing {
  int rows = 0;
  int kernels = 0;  // of those rows that ran past autograd at once
  bool is_left_out = false;
  int shards = 0;   // of those rows that are on DTensors, and looked at by what they run on shards
  int looking = 0;  // how many of that run now
  std::vector<Py_ssize_t> slots;  // the places of those rows, where every call is one

  Py_ssize_t around() const { return slots.empty() ? -1 : slots.back(); }

  // What the kernel of a row calls is part of it. What autograd's own kernel calls before is not: hooks of saved
  // tensors, the clone of what an in-place op overwrites.
  bool is_below() const {
    return kernels > 0 ||
           (rows > 0 && c10::impl::tls_local_dispatch_key_set().excluded_.has_any(c10::autograd_dispatch_keyset));
  }
};
template <size_t number>
inline thread_local Standing standing;

template <size_t number>
std::unique_ptr<at::ObserverContext> start_of(const at::RecordFunction& function) {
  Standing& here = standing<number>;
  if (here.is_left_out || OwnWork::depth > 0 || here.looking > 0) {
    return nullptr;
  }
  const bool takes_inner = slots()[number].takes_inner;
  if (!takes_inner && here.shards == 0 && here.is_below()) {
    return nullptr;
  }
  const Gil gil;
  const auto observed = slots()[number].observed;
  if (observed == nullptr) {
    return nullptr;
  }
  OwnWork own_work;
  if (function.scope() == at::RecordScope::USER_SCOPE) {
    return observed->begin_range();
  }
  if (takes_inner) {
    auto call = observed->begin_nested(function, here.around());
    if (call != nullptr) {
      here.slots.push_back(call->call->slot);
    }
    return call;
  }
  if (here.shards > 0) {
    auto call = observed->begin_on_shard(function);
    here.looking += call != nullptr;
    return call;
  }
  auto call = observed->begin_op(function, here.rows > 0);
  if (call != nullptr) {
    ++here.rows;
    here.shards += call->on_shards;
    here.kernels += !call->in_autograd;
  }
  return call;
}

template <size_t number>
void end_of(const at::RecordFunction& function, at::ObserverContext* context) {
  if (context == nullptr) {
    return;
  }
  const int64_t end = now_ns();
  const Gil gil;
  OwnWork own_work;
  auto& call = static_cast<ObservedCall&>(*context);
  Standing& here = standing<number>;
  if (call.op != nullptr && !here.slots.empty()) {
    here.slots.pop_back();
  } else if (call.op != nullptr && !call.call.has_value()) {
    --here.looking;
  } else if (call.op != nullptr) {
    --here.rows;
    here.shards -= call.on_shards;
    here.kernels -= !call.in_autograd;
  }
  if (const auto observed = slots()[number].observed) {
    observed->end(function, call, end);
  }
  call.forget();
}

// What the slots differ in, by their number.
struct SlotFunctions {
  at::CallbackHandle (*add)(bool in_all_threads);
  void (*leave_out)(bool);
};

template <size_t number>
at::CallbackHandle add_callback(bool in_all_threads) {
  const auto callback = at::RecordFunctionCallback(&start_of<number>, &end_of<number>)
                            .needsInputs(true)
                            .needsOutputs(true)
                            .scopes({at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE});
  return in_all_threads ? at::addGlobalCallback(callback) : at::addThreadLocalCallback(callback);
}

template <size_t... numbers>
constexpr std::array<SlotFunctions, most_observed> functions_of(std::index_sequence<numbers...>) {
  return {SlotFunctions{&add_callback<numbers>, [](bool left_out) { standing<numbers>.is_left_out = left_out; }}...};
}
constexpr auto slot_functions = functions_of(std::make_index_sequence<most_observed>());

// Begins to observe in this thread and those that autograd runs for it, or in all threads; returns what unobserve() takes,
// -1 where as many recordings are on as can be.
inline int64_t observe(py::object recording, py::object on_range, bool takes_inner, bool in_all_threads,
                       std::shared_ptr<Checker> checker, std::shared_ptr<Capturer> capturer) {
  for (size_t number = 0; number < most_observed; ++number) {
    Slot& slot = slots()[number];
    if (slot.observed == nullptr) {
      slot.observed = std::make_shared<Observed>(std::move(recording), std::move(on_range), takes_inner, std::move(checker),
                                                 std::move(capturer));
      slot.takes_inner = takes_inner;
      slot.handle = slot_functions[number].add(in_all_threads);
      return static_cast<int64_t>(number);
    }
  }
  return -1;
}

// How many recordings observe.
inline size_t observing() {
  return std::count_if(slots().begin(), slots().end(), [](const Slot& slot) { return slot.observed != nullptr; });
}

// While paused, what runs in this thread is no row.
inline void pause_observing(size_t number, bool paused) { slot_functions.at(number).leave_out(paused); }

inline void unobserve(size_t number) {
  Slot& slot = slots().at(number);
  slot_functions[number].leave_out(false);
  at::removeCallback(slot.handle);
  slot.observed.reset();
}

}  // namespace nbkit
