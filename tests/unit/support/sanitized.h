// Whether AddressSanitizer or ThreadSanitizer is active: it makes tests many times slower, and
// freed memory is kept for a while.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ONCILLA_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ONCILLA_SANITIZED 1
#endif
#endif

namespace oncilla {

#ifdef ONCILLA_SANITIZED
inline constexpr bool kSanitized = true;
#undef ONCILLA_SANITIZED
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace oncilla
