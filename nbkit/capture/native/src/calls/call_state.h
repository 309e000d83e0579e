// What is set around a call and may change what it computes.
#pragma once

#include <ATen/autocast_mode.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <string>
#include <unordered_map>
#include <utility>

#include "../tensors.h"

namespace nbkit {

// What nbkit/capture/calls/state.py reads.
inline void append_state(Key& key) {
  const auto& context = at::globalContext();
  const bool is_cast = at::autocast::is_autocast_enabled(at::kCPU);
  key.push_back((c10::GradMode::is_enabled() ? 1 : 0) | (c10::InferenceMode::is_enabled() ? 2 : 0) |
                (context.deterministicAlgorithms() ? 4 : 0) | (is_cast ? 8 : 0) |
                static_cast<int64_t>(context.float32MatmulPrecision()) << 8);
  key.push_back(static_cast<int64_t>(c10::get_default_dtype_as_scalartype()) |
                (is_cast ? static_cast<int64_t>(at::autocast::get_autocast_dtype(at::kCPU)) << 8 : 0));
  key.push_back(at::get_num_threads());
}

// What differs from what was set when the recording began.
class CallState {
 public:
  // `text` is ObservedCalls.state_text() of Python.
  explicit CallState(py::object text) : text_(std::move(text)) { append_state(normal_); }

  // As JSON, which is there as long as this.
  const std::string& now() {
    now_.clear();
    append_state(now_);
    if (now_ == normal_) {
      return nothing_;
    }
    const auto found = texts_.find(now_);
    if (found != texts_.end()) {
      return found->second;
    }
    const Key key = now_;  // Python may let other threads run
    return texts_.emplace(key, text_().cast<std::string>()).first->second;
  }

 private:
  py::object text_;
  Key normal_, now_;
  const std::string nothing_;
  std::unordered_map<Key, std::string, KeyHash> texts_;
};

}  // namespace nbkit
