// gcrypt.h: libgcrypt's ciphers, where the machine has that library.
//
// Purpose: the fastest well-kept ones that distributions have (docs/experiments.md). The library is loaded when it is
//          first asked for, which only encryption does, and stays: the plugin itself needs libc only. It is LGPL-2.1,
//          and the system's own copy.
// Threads: as Aead; the first call loads.
// Lifetime: libgcrypt wipes a cipher's state when it is closed.
// Errors:  null: the library, or the suite in it (FIPS mode has no ChaCha20), is not available. For FIPS mode's GCM an
//          Aead is made, which then refuses our nonces.
// Source:  libgcrypt's manual, 1.8 to 1.10. Its header is not needed: names, numbers and signatures are its ABI 20.
#pragma once

#include <memory>

#include "net_socket/seal/aead.h"

namespace tcpx {

std::unique_ptr<Aead> MakeGcryptAead(CipherSuite suite, const uint8_t* key);
// "1.10.1"; null: there is none.
const char* GcryptVersion();
// It keeps to FIPS 140, and so refuses some of what it has.
bool GcryptIsFips();

}  // namespace tcpx
