// The files of a folder of captured calls, written in threads that never take Python's lock, while the step and what follows it
// go on in Python. As PythonFileWriter of nbkit/trace/calls/file_writer.py.
#pragma once

#include <c10/util/ArrayRef.h>
#include <caffe2/serialize/crc_alt.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace nbkit {

namespace py = pybind11;

constexpr size_t checksum_digits = 8;

// Writes the CRC32 of some bytes in hexadecimal.
inline void write_checksum(char* digits, const char* data, size_t size) {
  uint32_t checksum = crc32_fast(data, size);
  for (size_t place = checksum_digits; place > 0; checksum >>= 4) {
    digits[--place] = "0123456789abcdef"[checksum & 15];
  }
}

inline std::string checksum_of(const char* data, size_t size) {
  std::string checksum(checksum_digits, '0');
  write_checksum(checksum.data(), data, size);
  return checksum;
}

// What the file begins with: the name and the place of each content; `ends` are where they end.
inline std::string head_of(const char* data, size_t first, c10::ArrayRef<int64_t> ends) {
  std::string head = "{";
  int64_t start = 0;
  for (const int64_t end : ends) {
    head += (head.size() == 1 ? "\"" : ",\"") + std::to_string(first++) + "-" + checksum_of(data + start, end - start) +
            R"(":{"dtype":"U8","shape":[)" + std::to_string(end - start) + R"(],"data_offsets":[)" + std::to_string(start) +
            "," + std::to_string(end) + "]}";
    start = end;
  }
  head += "}";
  std::string size;
  for (int byte = 0; byte < 8; ++byte) {
    size += static_cast<char>(static_cast<uint64_t>(head.size()) >> 8 * byte);
  }
  return size + head;
}

// Appends to a file, or writes one anew: one text after the other. Returns errno, 0 if all is written.
inline int write_file(const std::filesystem::path& path, const char* mode, c10::ArrayRef<std::string_view> texts) {
  std::FILE* file = std::fopen(path.c_str(), mode);
  if (file == nullptr) {
    return errno;
  }
  std::setvbuf(file, nullptr, _IONBF, 0);
  errno = 0;
  const bool is_whole = std::all_of(texts.begin(), texts.end(), [file](std::string_view text) {
    return std::fwrite(text.data(), 1, text.size(), file) == text.size();
  });
  const int error = is_whole ? 0 : (errno != 0 ? errno : EIO);
  return std::fclose(file) != 0 && is_whole ? errno : error;
}

// A file of contents, if `path` is not empty, and then the lines of the calls that name them.
struct WriteTask {
  std::filesystem::path path, calls_path;
  size_t first = 0;
  const char* data = nullptr;
  c10::ArrayRef<int64_t> ends;  // of each content
  std::vector<std::string_view> lines;
  size_t number = 0;      // of the task
  size_t head_bytes = 0;  // of the file of contents
  int error = 0;
  std::filesystem::path failed;
  bool is_done = false;

  // Leaves nothing half-written.
  void write_contents() {
    const std::string head = head_of(data, first, ends);
    auto partial = path;
    partial.replace_extension(".part");
    std::error_code trouble;
    error = write_file(partial, "wb", {head, {data, static_cast<size_t>(ends.empty() ? 0 : ends.back())}});
    if (error == 0) {
      std::filesystem::rename(partial, path, trouble);
      error = trouble.value();
    }
    if (error != 0) {
      std::filesystem::remove(partial, trouble);
      failed = path;
    }
    head_bytes = head.size();
  }

  void add_lines() {
    error = write_file(calls_path, "ab", lines);
    if (error != 0) {
      failed = calls_path;
    }
  }
};

// What the threads and Python share. Files of contents are written side by side, lines in the order of the tasks.
class WriteQueue {
 public:
  const pid_t process = ::getpid();

  // Returns whether another thread is to run().
  bool add(const std::shared_ptr<WriteTask>& task) {
    const std::lock_guard<std::mutex> lock(mutex_);
    task->number = added_++;
    waiting_.push_back(task);
    changed_.notify_all();
    const bool starts = threads_ == 0 || (threads_ < most_threads && waiting_.size() > 1);
    threads_ += starts;
    return starts;
  }

  // Runs tasks until it is closed; or, in the thread of the step, until none waits.
  void run(bool waits) {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return !waits || is_closed_ || !waiting_.empty(); });
      if (waiting_.empty()) {
        --threads_;
        return;
      }
      const std::shared_ptr<WriteTask> task = std::move(waiting_.front());
      waiting_.pop_front();
      if (!task->path.empty() && failed_ == nullptr) {
        lock.unlock();
        task->write_contents();
        lock.lock();
      }
      changed_.wait(lock, [this, &task] { return done_ == task->number; });
      end(*task, lock);
      failed_ = task->error != 0 ? task : nullptr;
      task->is_done = true;
      ++done_;
      changed_.notify_all();
    }
  }

  bool is_done(const WriteTask& task) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return task.is_done;
  }

  void wait(const WriteTask& task) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&task] { return task.is_done; });
  }

  // Waits until all is written; the threads end by themselves then, for which a step need not wait.
  void close() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return done_ == added_; });
    is_closed_ = true;
    changed_.notify_all();
  }

 private:
  static constexpr size_t most_threads = 2;  // sums take as long as files

  // Adds the lines of a task whose contents are there; none any more after an error: they could name what is not.
  void end(WriteTask& task, std::unique_lock<std::mutex>& lock) {
    if (failed_ != nullptr) {
      task.error = failed_->error;
      task.failed = failed_->failed;
    } else if (task.error == 0 && !task.lines.empty()) {
      lock.unlock();
      task.add_lines();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<WriteTask>> waiting_;
  std::shared_ptr<WriteTask> failed_;
  size_t added_ = 0, done_ = 0, threads_ = 0;
  bool is_closed_ = false;
};

// What is written, in memory of Python.
struct Written {
  py::buffer_info block, ends;
  py::list lines;
};

// A task in the hands of Python, which keeps the memory that is written.
class WriteJob {
 public:
  WriteJob(std::shared_ptr<WriteQueue> queue, std::shared_ptr<WriteTask> task, Written written)
      : queue_(std::move(queue)), task_(std::move(task)), written_(std::move(written)) {}
  WriteJob(WriteJob&&) = default;
  WriteJob& operator=(WriteJob&&) = delete;
  ~WriteJob() { wait(); }

  bool is_done() const { return queue_->is_done(*task_); }

  // Waits for it; returns the length of what the file of contents begins with. Raises OSError.
  size_t result() const {
    wait();
    if (task_->error != 0) {
      errno = task_->error;
      PyErr_SetFromErrnoWithFilename(PyExc_OSError, task_->failed.c_str());
      throw py::error_already_set();
    }
    return task_->head_bytes;
  }

 private:
  void wait() const {
    if (queue_ == nullptr || queue_->process != ::getpid()) {  // moved from, or forked: the thread is elsewhere
      return;
    }
    const py::gil_scoped_release others_run;
    queue_->wait(*task_);
  }

  std::shared_ptr<WriteQueue> queue_;
  std::shared_ptr<WriteTask> task_;
  Written written_;
};

class FileWriter {
 public:
  FileWriter() = default;
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter() { shutdown(); }

  // `contents`, if there are any: path, number of the first, block, where each ends.
  WriteJob submit(const py::object& contents, const py::object& calls_path, const py::list& lines) {
    auto task = std::make_shared<WriteTask>();
    Written written;
    written.lines = lines;
    if (!contents.is_none()) {
      const auto [path, first, block, ends] = contents.cast<std::tuple<py::object, size_t, py::buffer, py::buffer>>();
      written.block = block.request();
      written.ends = ends.request();
      task->path = path_of(path);
      task->first = first;
      task->data = static_cast<const char*>(written.block.ptr);
      task->ends = {static_cast<const int64_t*>(written.ends.ptr), static_cast<size_t>(written.ends.size)};
    }
    task->calls_path = path_of(calls_path);
    for (const py::handle line : lines) {
      task->lines.push_back(line.cast<std::string_view>());
    }
    if (queue_->add(task)) {
      try {
        std::thread([queue = queue_] { queue->run(true); }).detach();
      } catch (const std::system_error&) {  // the system has no more
        const py::gil_scoped_release others_run;
        queue_->run(false);
      }
    }
    return {queue_, std::move(task), std::move(written)};
  }

  // Waits until all is written.
  void shutdown() {
    if (queue_->process == ::getpid()) {  // else forked
      const py::gil_scoped_release others_run;
      queue_->close();
    }
  }

 private:
  static std::filesystem::path path_of(const py::object& path) {
    return py::module_::import("os").attr("fsencode")(path).cast<std::string>();
  }

  std::shared_ptr<WriteQueue> queue_ = std::make_shared<WriteQueue>();
};

}  // namespace nbkit
