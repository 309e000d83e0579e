// The records that the library has made and not yet handed over to Python: a call of Python for each would cost as much again.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <utility>
#include <vector>

#include "../host.h"

namespace nbkit {

namespace py = pybind11;

class PendingRecords {
 public:
  // `add_texts` is that of Capturing (nbkit/capture/operators/capturing.py).
  explicit PendingRecords(py::object add_texts) : add_texts_(std::move(add_texts)) {}

  // The text of a record, with the row of its call, the name of its op, and its number.
  void add(const std::string& text, size_t slot, const py::object& op, int64_t number) {
    texts_.append(py::bytes(text));
    slots_.append(slot);
    ops_.append(op);
    numbers_.append(number);
  }

  // Each is handed over where little is left of what the folder may take.
  void tell_each(bool tells) { most_ = tells ? 1 : most; }

  bool is_due(int64_t now) const { return texts_.size() >= most_ || now - handed_over_ > most_waiting_ns; }

  void hand_over() {
    handed_over_ = now_ns();
    if (texts_.empty()) {
      return;
    }
    const auto taken = [](py::list& list) { return std::exchange(list, py::list()); };
    const py::list texts = taken(texts_), slots = taken(slots_), ops = taken(ops_), numbers = taken(numbers_);
    add_texts_(texts, slots, ops, numbers);
  }

 private:
  static constexpr size_t most = 256;
  static constexpr int64_t most_waiting_ns = 200'000'000;

  py::object add_texts_;
  py::list texts_, slots_, ops_, numbers_;
  size_t most_ = most;
  int64_t handed_over_ = now_ns();
};

}  // namespace nbkit
