// The records that the library has made and not yet handed over to Python: a call of Python for each would cost as much again.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <utility>
#include <vector>

#include "../host.h"
#include "../python_call.h"
#include "file_writer.h"

namespace nbkit {

namespace py = pybind11;

class PendingRecords {
 public:
  // `add_lines` is that of Capturing (nbkit/capture/operators/capturing.py).
  explicit PendingRecords(py::object add_lines) : add_lines_(std::move(add_lines)) {}

  // A record whose text `append_to` adds, with the row of its call, the name of its op, and its number; as line_of() of
  // nbkit/trace/calls/layout.py.
  template <typename AppendTo>
  void add(size_t slot, const py::object& op, int64_t number, const AppendTo& append_to) {
    lines_ += R"({"crc32":")";
    const size_t place = lines_.size();
    lines_.append(checksum_digits, '0').append(R"(","call":)");
    const size_t start = lines_.size();
    append_to(lines_);
    write_checksum(&lines_[place], lines_.data() + start, lines_.size() - start);
    lines_ += "}\n";
    ends_.push_back(static_cast<int64_t>(lines_.size()));
    slots_.push_back(static_cast<int64_t>(slot));
    ops_.append(op);
    numbers_.push_back(number);
  }

  // Each is handed over where little is left of what the folder may take.
  void tell_each(bool tells) { most_ = tells ? 1 : most; }

  bool is_due(int64_t now) const { return ends_.size() >= most_ || now - handed_over_ > most_waiting_ns; }

  void hand_over() {
    handed_over_ = now_ns();
    if (ends_.empty()) {
      return;
    }
    const py::bytes lines(lines_), ends = as_bytes(ends_), slots = as_bytes(slots_), numbers = as_bytes(numbers_);
    const py::list ops = std::exchange(ops_, py::list());
    lines_.clear();
    for (auto* of_each : {&ends_, &slots_, &numbers_}) {
      of_each->clear();
    }
    add_lines_(lines, ends, slots, ops, numbers);
  }

 private:
  static constexpr size_t most = 1024;
  static constexpr int64_t most_waiting_ns = 200'000'000;

  py::object add_lines_;
  std::string lines_;
  std::vector<int64_t> ends_, slots_, numbers_;  // a line of each record
  py::list ops_;
  size_t most_ = most;
  int64_t handed_over_ = now_ns();
};

}  // namespace nbkit
