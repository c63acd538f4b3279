#include "common/mutex.h"

#include <mutex>
#include <thread>

#include "gtest/gtest.h"

namespace tcpx {
namespace {

bool OthersGet(Mutex* mutex) {
  bool got = false;
  std::thread([mutex, &got] {
    if (!mutex->try_lock()) return;
    got = true;
    mutex->unlock();
  }).join();
  return got;
}

TEST(MutexTest, ALockHoldsItToTheEndOfItsScope) {
  Mutex mutex;
  {
    MutexLock lock(mutex);
    EXPECT_FALSE(OthersGet(&mutex));
  }
  EXPECT_TRUE(OthersGet(&mutex));
}

TEST(MutexTest, AnAdoptedLockIsGivenBackToo) {
  Mutex mutex;
  {
    ASSERT_TRUE(mutex.try_lock());
    MutexLock lock(mutex, std::adopt_lock);
    EXPECT_FALSE(OthersGet(&mutex));
  }
  EXPECT_TRUE(OthersGet(&mutex));
}

TEST(CondVarTest, GivesTheMutexUpWhileItWaitsAndHoldsItAfterwards) {
  Mutex mutex;
  CondVar changed;
  bool asked = false;
  bool answered = false;
  std::thread other([&] {
    MutexLock lock(mutex);
    while (!asked) changed.Wait(mutex);
    answered = true;
    changed.NotifyAll();
  });
  {
    MutexLock lock(mutex);
    asked = true;
    changed.NotifyAll();
    while (!answered) changed.Wait(mutex);
    EXPECT_FALSE(OthersGet(&mutex));
  }
  other.join();
  EXPECT_TRUE(OthersGet(&mutex));
}

}  // namespace
}  // namespace tcpx
