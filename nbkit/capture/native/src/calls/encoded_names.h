// The names of contents as JSON.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "call_storages.h"
#include "contents.h"
#include "record_text.h"

namespace nbkit {

namespace py = pybind11;

class EncodedNames {
 public:
  // `encode` is Python's, for names that are no numbers: a parameter may have any.
  EncodedNames(std::shared_ptr<Contents> contents, py::object encode)
      : contents_(std::move(contents)), encode_(std::move(encode)) {}

  // Has those ready that a record names.
  void encode(const CallStorages& storages) {
    for (const CallStorage& one : storages.all) {
      for (const Name name : {one.before.value_or(0), one.after.value_or(0)}) {
        while (static_cast<Name>(encoded_.size()) < -name) {
          const size_t place = encoded_.size();
          std::string text = encode_(contents_->text_of(-1 - static_cast<Name>(place))).cast<std::string>();
          if (encoded_.size() == place) {  // else another thread has been here meanwhile
            encoded_.push_back(std::move(text));
          }
        }
      }
    }
  }

  void append_to(std::string& text, Name name) const {
    if (name < 0) {
      text += encoded_[static_cast<size_t>(-1 - name)];
    } else {
      append_number(text, R"(")", name);
      text += '"';
    }
  }

 private:
  std::shared_ptr<Contents> contents_;
  py::object encode_;
  std::vector<std::string> encoded_;  // of -1, -2 and so on
};

}  // namespace nbkit
