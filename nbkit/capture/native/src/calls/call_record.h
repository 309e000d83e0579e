// The record of one call, as CallTaker in Python makes it (nbkit/capture/calls/taking.py), which is its reference.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "../arguments.h"
#include "call_storages.h"
#include "capture_traits.h"
#include "record_text.h"

namespace nbkit {

class CallRecord {
 public:
  CallStorages storages;
  std::vector<at::Generator> generators;   // that it is given
  std::vector<const at::Tensor*> written;  // that it writes to
  std::vector<size_t> inputs;              // the numbers of the tensors that it is given, in their order
  Key key;                                 // of its arguments, but for their tensors
  bool has_parts = false;                  // whether one of these is sparse
  size_t input_storages = 0;              // of `storages`, as many are those of its inputs
  bool is_usual = true;  // else it has what Python has to look at: other layouts and types, generators of devices

  // Leaves no more than memory for another call.
  void clear() {
    storages.clear();
    generators.clear();
    written.clear();
    inputs.clear();
    key.clear();
    has_parts = false;
    is_usual = true;
    given_.clear();
    numbers_.clear();
    numbered_inputs_.clear();
    tensors_.clear();
    outputs_.clear();
    written_.clear();
    tensor_count_ = 0;
  }

  // Takes what a call is given; `arguments` are there until it has ended. `is_one` says of a tensor whether Python sees one
  // object wherever it is met.
  template <typename IsOne>
  void begin(c10::ArrayRef<c10::IValue> arguments, const CaptureTraits& traits, Contents& contents, const IsOne& is_one) {
    for (const size_t index : traits.written) {
      each_tensor(arguments[index], [&](const at::Tensor& tensor) { written.push_back(&tensor); });
    }
    for (const c10::IValue& argument : arguments) {
      if (argument.isGenerator()) {
        add_generator(argument.toGenerator());
      } else {
        append_argument(
            key, argument,
            [&](const at::Tensor& tensor) {
              key.push_back(ArgumentTag::tensor);
              given_.push_back(&tensor);
              has_parts = has_parts || tensor.layout() != c10::kStrided;
              is_usual = is_usual && storages.meet(tensor);
            },
            [&] { is_usual = false; });
      }
    }
    if (!is_usual) {
      return;
    }
    storages.place(traits.takes_whole, contents);
    for (const at::Tensor* tensor : given_) {
      inputs.push_back(number_of(*tensor, is_one(*tensor)));
    }
    std::swap(numbers_, numbered_inputs_);
    input_storages = storages.all.size();
  }

  const std::vector<const at::Tensor*>& given() const { return given_; }

  // Whether each storage is overwritten, and not read, by a call that does not read what it writes to.
  Flags unread() {
    Flags is_read(storages.all.size(), false), is_written(storages.all.size(), false);
    auto left = written;  // one that is given twice, as in exp(x, out=x), is read as well
    for (const at::Tensor* tensor : given_) {
      const auto found = std::find_if(left.begin(), left.end(), [tensor](auto* one) { return one->is_same(*tensor); });
      if (found == left.end()) {
        storages.each_number(*tensor, [&](size_t number) { is_read[number] = true; });
        continue;
      }
      left.erase(found);
      if (tensor->layout() == c10::kStrided) {  // a sparse one is made again of indices that fit
        storages.each_number(*tensor, [&](size_t number) { is_written[number] = true; });
      }
    }
    for (size_t number = 0; number < is_read.size(); ++number) {
      is_written[number] = is_written[number] && !is_read[number];
    }
    return is_written;
  }

  // Takes what a call that has run returned and wrote to.
  template <typename IsOne>
  void end(c10::ArrayRef<c10::IValue> results, const CaptureTraits& traits, Contents& contents, const IsOne& is_one) {
    for (const c10::IValue& result : results) {
      meet(result);
    }
    for (const at::Tensor* tensor : written) {
      is_usual = is_usual && storages.meet(*tensor);
    }
    if (!is_usual) {
      return;
    }
    storages.place(traits.takes_whole, contents);
    append_results(results, is_one);
    if (!written.empty()) {
      append_list(written_, written, [&](const at::Tensor* tensor) {
        const auto input = std::find_if(numbered_inputs_.begin(), numbered_inputs_.end(),
                                        [&](const auto& one) { return one.first == tensor->unsafeGetTensorImpl(); });
        if (input == numbered_inputs_.end()) {
          is_usual = false;
          return;
        }
        append_number(written_, "[", input->second);
        append_number(written_, ",", number_of(*tensor, true));
        written_ += ']';
      });
    }
  }

  // Adds the text; `states` those of its generators, `set` what differs from the beginning of the recording, as JSON.
  template <typename AddName>
  void append_to(std::string& text, const CaptureTraits& traits, int64_t number, const std::string& set,
                 const ArgumentsText& arguments, c10::ArrayRef<Name> states, const AddName& add_name) const {
    append_number(text.append(R"({"op":)").append(traits.encoded_name), R"(,"number":)", number);
    text.append(set).append(R"(,"storages":)");
    append_list(text, storages.all, [&](const CallStorage& one) {
      append_number(text, R"({"bytes":)", one.span.count);
      if (!one.storage.device().is_cpu()) {
        text.append(R"(,"device":")").append(one.storage.device().str()).append("\"");
      }
      if (one.before.has_value()) {
        text += R"(,"before":)";
        add_name(*one.before);
      }
      if (one.after.has_value()) {
        text += R"(,"after":)";
        add_name(*one.after);
      }
      text += '}';
    });
    text.append(R"(,"tensors":[)").append(tensors_).append("],");
    arguments.append_to(text, inputs);
    const auto add_state = [&](Name state) {
      text += R"({"device":"cpu","state":)";
      add_name(state);
      text += '}';
    };
    if (!generators.empty()) {
      text += R"(,"generators":)";
      append_list(text, states, add_state);
    } else if (!states.empty()) {
      text += R"(,"generator":)";
      add_state(states[0]);
    }
    text.append(R"(,"outputs":)").append(outputs_);
    if (!written_.empty()) {
      text.append(R"(,"written":)").append(written_);
    }
    text += '}';
  }

 private:
  using Numbers = std::vector<std::pair<const c10::TensorImpl*, size_t>>;

  void add_generator(const at::Generator& generator) {
    is_usual = is_usual && generator.defined() && generator.device().is_cpu();
    key.push_back(ArgumentTag::generator);
    generators.push_back(generator);
  }

  void meet(const c10::IValue& result) {
    if (result.isTensor()) {
      is_usual = is_usual && (!result.toTensor().defined() || storages.meet(result.toTensor()));
    } else if (result.isList()) {
      for (const c10::IValue& item : result.toListRef()) {
        meet(item);
      }
    }
  }

  // As the Python objects of returned() in python_call.h.
  template <typename IsOne>
  void append_results(c10::ArrayRef<c10::IValue> results, const IsOne& is_one) {
    if (results.size() == 1 && results[0].isList()) {
      append_result(results[0], is_one);
    } else if (results.empty()) {
      outputs_ += "[null]";
    } else {
      append_list(outputs_, results, [&](const c10::IValue& result) { append_result(result, is_one); });
    }
  }

  template <typename IsOne>
  void append_result(const c10::IValue& result, const IsOne& is_one) {
    if (result.isTensor() && result.toTensor().defined()) {
      const size_t number = number_of(result.toTensor(), is_one(result.toTensor()));
      append_number(outputs_, R"({"tensor":)", number);
      outputs_ += '}';
    } else if (result.isList()) {
      append_list(outputs_, result.toListRef(), [&](const c10::IValue& item) { append_result(item, is_one); });
    } else if (result.isNone() || result.isTensor()) {
      outputs_ += "null";
    } else if (result.isBool()) {
      outputs_ += result.toBool() ? "true" : "false";
    } else if (result.isInt()) {
      append_number(outputs_, result.toInt());
    } else if (result.isDouble()) {
      append_real(outputs_, result.toDouble());
    } else if (result.isComplexDouble()) {
      outputs_ += R"({"complex":[)";
      append_real(outputs_, result.toComplexDouble().real());
      outputs_ += ',';
      append_real(outputs_, result.toComplexDouble().imag());
      outputs_ += "]}";
    } else {
      is_usual = false;
    }
  }

  // The number of a tensor in the record, to which it is added. `is_one` of one that is the same wherever it is met.
  size_t number_of(const at::Tensor& tensor, bool is_one) {
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    if (is_one) {
      const auto found =
          std::find_if(numbers_.begin(), numbers_.end(), [impl](const auto& known) { return known.first == impl; });
      if (found != numbers_.end()) {
        return found->second;
      }
    }
    const size_t number = describe(tensor);
    if (is_one) {
      numbers_.emplace_back(impl, number);
    }
    return number;
  }

  size_t describe(const at::Tensor& tensor) {
    const bool is_strided = tensor.layout() == c10::kStrided;
    std::vector<size_t> parts;
    if (!is_strided) {
      each_part(tensor, [&](const at::Tensor& part) { parts.push_back(describe(part)); });
    }
    tensors_ += tensor_count_ > 0 ? R"(,{"dtype":")" : R"({"dtype":")";
    tensors_.append(dtype_name(tensor.scalar_type())).append(R"(","shape":)");
    append_numbers(tensors_, tensor.sizes());
    is_strided ? append_geometry(tensors_, tensor) : append_parts(tensors_, tensor, parts);
    tensors_ += '}';
    return tensor_count_++;
  }

  void append_geometry(std::string& text, const at::Tensor& tensor) {
    const size_t number = storages.number_of(tensor.storage());
    append_number(text, R"(,"storage":)", number);
    if (!is_row_by_row(tensor)) {
      text += R"(,"stride":)";
      append_numbers(text, tensor.strides());
    }
    const int64_t offset =
        tensor.storage_offset() - storages.all[number].span.start / static_cast<int64_t>(tensor.element_size());
    if (tensor.numel() > 0 && offset != 0) {
      append_number(text, R"(,"offset":)", offset);
      is_usual = is_usual && offset > 0;  // else it lies outside of what is stored
    }
    if (tensor.is_conj()) {
      text += R"(,"conj":true)";
    }
    if (tensor.is_neg()) {
      text += R"(,"neg":true)";
    }
  }

  static void append_parts(std::string& text, const at::Tensor& tensor, const std::vector<size_t>& parts) {
    text.append(R"(,"layout":")").append(layout_name(tensor.layout())).append(R"(","parts":)");
    append_list(text, parts, [&](size_t part) { append_number(text, part); });
    if (tensor.layout() == c10::kSparse) {
      text.append(R"(,"is_coalesced":)").append(tensor.is_coalesced() ? "true" : "false");
    }
  }

  std::vector<const at::Tensor*> given_;
  Numbers numbers_, numbered_inputs_;  // of tensors that are the same wherever they are met
  std::string tensors_, outputs_, written_;
  size_t tensor_count_ = 0;
};

}  // namespace nbkit
