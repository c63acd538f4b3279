// libgcrypt's ciphers, where the machine has that library (cipher_suites.h).
#include <dlfcn.h>
#include <pthread.h>

#include "common/mutex.h"
#include "net_socket/seal/cipher_suites.h"
#include "net_socket/seal/key_memory.h"

namespace tcpx {
namespace {

using Handle = void*;

// enum gcry_ctl_cmds.
constexpr int kFinalize = 5;
constexpr int kInitializationFinished = 38;
constexpr int kInitializationFinishedAsk = 39;
constexpr int kFipsModeAsk = 55;
// By suite: AES128 and CHACHA20 of enum gcry_cipher_algos; OCB, GCM and POLY1305 of gcry_cipher_modes.
constexpr struct {
  int algorithm;
  int mode;
} kCiphers[kCipherSuites] = {{7, 11}, {7, 9}, {316, 10}};
// Before it OCB and Poly1305 are missing, or slow.
constexpr char kVersionMin[] = "1.8.0";

// What the library has by a name, as the function that it is taken for.
struct Symbol {
  void* at;
  template <typename Function>
  operator Function*() const {
    return reinterpret_cast<Function*>(at);
  }
};

class Gcrypt {
 private:
  void* const library_ = dlopen("libgcrypt.so.20", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  bool complete_ = library_ != nullptr;

  Symbol Find(const char* name) {
    const Symbol found = {complete_ ? dlsym(library_, name) : nullptr};
    complete_ = found.at != nullptr;
    return found;
  }

 public:
  const char* (*const check_version)(const char*) = Find("gcry_check_version");
  unsigned (*const control)(int, ...) = Find("gcry_control");
  unsigned (*const open)(Handle*, int, int, unsigned) = Find("gcry_cipher_open");
  void (*const close)(Handle) = Find("gcry_cipher_close");
  unsigned (*const ctl)(Handle, int, void*, size_t) = Find("gcry_cipher_ctl");
  unsigned (*const setkey)(Handle, const void*, size_t) = Find("gcry_cipher_setkey");
  unsigned (*const setiv)(Handle, const void*, size_t) = Find("gcry_cipher_setiv");
  unsigned (*const authenticate)(Handle, const void*, size_t) = Find("gcry_cipher_authenticate");
  unsigned (*const encrypt)(Handle, void*, size_t, const void*, size_t) = Find("gcry_cipher_encrypt");
  unsigned (*const decrypt)(Handle, void*, size_t, const void*, size_t) = Find("gcry_cipher_decrypt");
  unsigned (*const gettag)(Handle, void*, size_t) = Find("gcry_cipher_gettag");
  unsigned (*const checktag)(Handle, const void*, size_t) = Find("gcry_cipher_checktag");
  // Null: there is no such library, or it is too old.
  const char* const version = complete_ ? check_version(kVersionMin) : nullptr;
};

void LockForFork();
void UnlockAfterFork();
void ForgetKeysInChild();

// libgcrypt is set up by its first user, perhaps not us. Secure memory is not used: it is small, and locks pages.
Gcrypt Load() {
  Gcrypt found;
  if (found.version == nullptr) return found;
  if (found.control(kInitializationFinishedAsk) == 0) found.control(kInitializationFinished, 0);
  // glibc forgets the handlers when the plugin is unloaded.
  (void)pthread_atfork(&LockForFork, &UnlockAfterFork, &ForgetKeysInChild);
  return found;
}

const Gcrypt& Library() {
  static const Gcrypt library = Load();
  return library;
}

// Above what a handle of AES takes, with its tables.
constexpr size_t kHandleBytes = 8192;

// What libgcrypt has of a key is on pages of the heap, which a forked child copies: it is overwritten there.
struct LivingKey {
  Handle handle = nullptr;
  size_t key_bytes = 0;
  LivingKey* next = nullptr;
  LivingKey* before = nullptr;
};
Mutex g_living_mutex;  // held by a thread that forks, so that the child finds the list whole
LivingKey* g_living TCPX_GUARDED_BY(g_living_mutex) = nullptr;

void LockForFork() TCPX_NO_THREAD_SAFETY_ANALYSIS { g_living_mutex.lock(); }
void UnlockAfterFork() TCPX_NO_THREAD_SAFETY_ANALYSIS { g_living_mutex.unlock(); }
void ForgetKeysInChild() TCPX_NO_THREAD_SAFETY_ANALYSIS {
  const uint8_t zeros[32] = {};
  for (LivingKey* key = g_living; key != nullptr; key = key->next) {
    (void)Library().setkey(key->handle, zeros, key->key_bytes);
  }
  g_living_mutex.unlock();
}

class GcryptAead final : public Aead {
 public:
  GcryptAead(Handle handle, CipherSuite suite)
      : gcrypt_(Library()), handle_(handle), finalizes_(suite == CipherSuite::kAes128Ocb) {
    HideKeyMemory(handle, kHandleBytes);
    MutexLock lock(g_living_mutex);
    living_ = {handle, KeyBytes(suite), g_living};
    if (g_living != nullptr) g_living->before = &living_;
    g_living = &living_;
  }
  ~GcryptAead() override {
    {
      MutexLock lock(g_living_mutex);
      (living_.before == nullptr ? g_living : living_.before->next) = living_.next;
      if (living_.next != nullptr) living_.next->before = living_.before;
    }
    gcrypt_.close(handle_);
  }

  bool Seal(const AeadNonce& nonce, const char* ad, size_t ad_bytes, const char* in, size_t bytes, char* out) override {
    return Begin(nonce, ad, ad_bytes) && gcrypt_.encrypt(handle_, out, bytes, in, bytes) == 0 &&
           gcrypt_.gettag(handle_, out + bytes, kTagBytes) == 0;
  }

  bool Open(const AeadNonce& nonce, const char* ad, size_t ad_bytes, const char* in, size_t bytes, char* out) override {
    return Begin(nonce, ad, ad_bytes) && gcrypt_.decrypt(handle_, out, bytes, in, bytes) == 0 &&
           gcrypt_.checktag(handle_, in + bytes, kTagBytes) == 0;
  }

 private:
  bool Begin(const AeadNonce& nonce, const char* ad, size_t ad_bytes) {
    return gcrypt_.setiv(handle_, nonce.data(), nonce.size()) == 0 &&
           gcrypt_.authenticate(handle_, ad, ad_bytes) == 0 &&
           (!finalizes_ || gcrypt_.ctl(handle_, kFinalize, nullptr, 0) == 0);
  }

  const Gcrypt& gcrypt_;
  const Handle handle_;
  const bool finalizes_;
  LivingKey living_;
};

}  // namespace

std::unique_ptr<Aead> MakeGcryptAead(CipherSuite suite, const uint8_t* key) {
  const Gcrypt& gcrypt = Library();
  if (gcrypt.version == nullptr) return nullptr;
  const auto& cipher = kCiphers[static_cast<int>(suite)];
  Handle handle = nullptr;
  if (gcrypt.open(&handle, cipher.algorithm, cipher.mode, 0) != 0) return nullptr;
  auto aead = std::make_unique<GcryptAead>(handle, suite);
  if (gcrypt.setkey(handle, key, KeyBytes(suite)) != 0) return nullptr;
  return aead;
}

const char* GcryptVersion() { return Library().version; }

bool GcryptIsFips() { return GcryptVersion() != nullptr && Library().control(kFipsModeAsk, 0) != 0; }

}  // namespace tcpx
