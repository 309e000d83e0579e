// Running an op with torch's lazy conj() and neg() in force: nbkit/capture/recorder/conj_neg.py, at no cost.
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace nbkit {

// The keys of this thread, with those that resolve a lazy conj() and neg() in force.
inline c10::impl::LocalDispatchKeySet with_lazy_bits() {
  c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  keys.excluded_ = keys.excluded_ - c10::DispatchKeySet({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative});
  return keys;
}

}  // namespace nbkit
