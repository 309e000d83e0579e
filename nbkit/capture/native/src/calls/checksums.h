// The CRC-32 of many contents, one after the other in memory, in one go: as zlib.crc32() of each in Python.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <caffe2/serialize/crc_alt.h>

#include <vector>

namespace nbkit {

namespace py = pybind11;

// `ends` are where the contents end.
inline std::vector<uint32_t> checksums(const py::buffer& buffer, const std::vector<size_t>& ends) {
  const py::buffer_info info = buffer.request();
  const char* data = static_cast<const char*>(info.ptr);
  std::vector<uint32_t> sums;
  const py::gil_scoped_release others_run;
  size_t start = 0;
  for (const size_t end : ends) {
    sums.push_back(crc32_fast(data + start, end - start));
    start = end;
  }
  return sums;
}

}  // namespace nbkit
