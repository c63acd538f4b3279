// cipher_suites.h: which ciphers this process has, and the maker of each.
//
// Threads: any. Lifetime: libgcrypt, once loaded, stays.
// Errors:  MakeAead: null where no library here has the suite.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net_socket/seal/aead.h"

namespace tcpx {

// The ChaCha20-Poly1305 that is linked in, so that no machine is without a cipher.
// Purpose: libsodium's, by far not the fastest: used where no library of the machine has one.
// Threads, lifetime, errors: as Aead.

// `key` has KeyBytes.
std::unique_ptr<Aead> MakeLinkedInAead(const uint8_t* key);

// `key` has KeyBytes.
std::unique_ptr<Aead> MakeAead(CipherSuite suite, const uint8_t* key);

// Those that this process has, by the trial of a known answer, the best first: never empty, since one is linked in. *by
// gets what they come from, for the log; *slow why the best is far from what this processor could do; empty: it is not.
std::vector<CipherSuite> FindSuites(std::string* by, std::string* slow = nullptr);
// The latter, of a processor and a libgcrypt (null: none).
std::string WhySlow(CipherSuite best, bool has_aes, const char* gcrypt_version);

}  // namespace tcpx
