// The lines of user code from which ops and named blocks come, beside torch.profiler, which tells none.
#pragma once

#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>

#include <cctype>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "host.h"

namespace nbkit {

// One entry for each named block, and each op that is in no other op, of one thread, in order. What an op calls has its line.
class LineLog {
 public:
  // Whether its end matters: of an op, of whose inside nothing is told, and of an optimizer's step.
  enum class Begun { other, op, optimizer };

  Begun begin(const at::RecordFunction& function) {
    const Name& name = named(function.name());
    const bool is_block = function.scope() == at::RecordScope::USER_SCOPE;
    if (!is_block && !name.is_op) {
      return Begun::other;  // a range of our own
    }
    names_.push_back(name.number);
    PyObject* place = Py_None;
    // Where autograd's engine runs a node no line does; a Function or a hook of the user's has the GIL.
    if (torch::autograd::get_current_node() == nullptr || has_gil()) {
      const Gil gil;
      place = find(is_optimizing ? frames_in_optimizer : most_frames);
    }
    places_.push_back(place);
    is_inside = !is_block;
    if (!is_block) {
      return Begun::op;
    }
    const bool begins_step = name.is_optimizer && !is_optimizing;
    is_optimizing |= begins_step;
    return begins_step ? Begun::optimizer : Begun::other;
  }
  static void end(Begun begun) { (begun == Begun::op ? is_inside : is_optimizing) = false; }

  bool is_of_this_thread() const { return std::this_thread::get_id() == thread_; }
  static bool is_in_op() { return is_inside; }

  // Names, and per entry the number of its name and its place, None without.
  py::tuple result() const {
    py::list texts, places;
    for (const std::string& text : texts_) {
      texts.append(text);
    }
    for (PyObject* place : places_) {
      places.append(py::handle(place));
    }
    return py::make_tuple(texts, py::array(py::ssize_t(names_.size()), names_.data()), places);
  }

 private:
  struct Name {
    int64_t number;
    bool is_op, is_optimizer;
  };

  // As nbkit/timeline/names.py tells a call of the dispatcher: two words.
  static bool is_op_name(std::string_view name) {
    const size_t colons = name.find("::");
    if (colons == std::string_view::npos || colons == 0 || colons + 2 == name.size()) {
      return false;
    }
    for (size_t index = 0; index < name.size(); ++index) {
      const bool is_word = std::isalnum(static_cast<unsigned char>(name[index])) != 0 || name[index] == '_';
      if (!is_word && index != colons && index != colons + 1) {
        return false;
      }
    }
    return true;
  }

  // Names are told apart by their text: that of a block is freed with it.
  const Name& named(std::string_view name) {
    auto known = numbers_.find(name);
    if (known == numbers_.end()) {
      const std::string& text = texts_.emplace_back(name);
      known = numbers_.emplace(text, Name{static_cast<int64_t>(numbers_.size()), is_op_name(name), name.starts_with("Optimizer.")}).first;
    }
    return known->second;
  }

  static PyObject* find(int most) {
    const py::error_scope raised;
    try {
      return place_of_op(most).ptr();
    } catch (const std::exception& error) {  // the line is not known: no trouble of the step's
      PyErr_Clear();
      if (is_interrupt(error)) {
        PyErr_SetInterrupt();
      }
    }
    return Py_None;
  }

  // torch's own optimizers run many small ops below many frames: those have the line of the step. An op that a user's
  // optimizer calls has its own.
  static constexpr int frames_in_optimizer = 2;
  static inline thread_local bool is_inside = false, is_optimizing = false;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, Name> numbers_;
  std::vector<int64_t> names_;
  std::vector<PyObject*> places_;
};

inline std::shared_ptr<LineLog>& line_log() {
  static auto& log = *new std::shared_ptr<LineLog>();
  return log;
}
// Of this thread's observer. It stays, and logs nothing, where a log ends in another thread, which cannot remove it.
inline thread_local at::CallbackHandle line_log_handle = at::INVALID_CALLBACK_HANDLE;

// What stands for a call whose end is waited for.
struct Logged final : at::ObserverContext {
  LineLog::Begun begun;
  explicit Logged(LineLog::Begun begun) : begun(begun) {}
  ~Logged() override { LineLog::end(begun); }
};

inline std::unique_ptr<at::ObserverContext> log_start(const at::RecordFunction& function) {
  const auto& log = line_log();
  if (log == nullptr || LineLog::is_in_op() || !log->is_of_this_thread()) {
    return nullptr;
  }
  const LineLog::Begun begun = log->begin(function);
  return begun == LineLog::Begun::other ? nullptr : std::make_unique<Logged>(begun);
}

inline bool begin_lines() {
  if (line_log() != nullptr) {
    return false;
  }
  line_log() = std::make_shared<LineLog>();
  if (line_log_handle == at::INVALID_CALLBACK_HANDLE) {
    line_log_handle = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&log_start, [](const at::RecordFunction&, at::ObserverContext*) {})
            .scopes({at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE}));
  }
  return true;
}

inline py::tuple end_lines() {
  const auto log = std::move(line_log());
  line_log() = nullptr;
  if (log->is_of_this_thread()) {
    at::removeCallback(line_log_handle);
    line_log_handle = at::INVALID_CALLBACK_HANDLE;
  }
  return log->result();
}

}  // namespace nbkit
