// What is the same at every call of an op: from ObservedCalls.describe() in Python.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../tensors.h"
#include "record_text.h"

namespace nbkit {

namespace py = pybind11;

// The arguments of calls that differ in their tensors alone, as JSON: a tensor's number stands between two texts.
class ArgumentsText {
 public:
  explicit ArgumentsText(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      text_ += text;
      ends_.push_back(text_.size());
    }
  }

  size_t tensors() const { return ends_.size() - 1; }

  void append_to(std::string& record, const std::vector<size_t>& tensors) const {
    size_t start = 0;
    for (size_t place = 0; place < ends_.size(); ++place) {
      record.append(text_, start, ends_[place] - start);
      start = ends_[place];
      if (place + 1 < ends_.size()) {
        append_number(record, tensors.at(place));
      }
    }
  }

 private:
  std::string text_;
  std::vector<size_t> ends_;
};

struct CaptureTraits {
  bool is_uninitialised;
  bool is_usual;     // its record follows from arguments, what is set, and values
  bool takes_whole;  // storages are told by their whole size: what it does follows from shapes alone
  bool is_random;
  bool overwrites;              // what it writes to, it does not read
  std::vector<size_t> written;  // arguments it writes to
  py::object name;
  std::string encoded_name;  // as JSON
  std::unordered_map<Key, ArgumentsText, KeyHash> arguments;

  // What `describe` makes of arguments that were not met, which is kept for those that are alike.
  template <typename Describe>
  const ArgumentsText& arguments_of(const Key& key, const Describe& describe) {
    const auto found = arguments.find(key);
    if (found != arguments.end()) {
      return found->second;
    }
    ArgumentsText text(describe());
    if (arguments.size() >= most_known) {  // numbers that differ from call to call
      arguments.clear();
    }
    return arguments.insert_or_assign(key, std::move(text)).first->second;
  }

 private:
  static constexpr size_t most_known = 2000;
};

}  // namespace nbkit
