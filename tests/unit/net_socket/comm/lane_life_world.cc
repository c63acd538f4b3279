#include "tests/unit/net_socket/comm/lane_life_world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "net_socket/message/flight.h"
#include "net_socket/message/request.h"

namespace tcpx {
namespace lane_life {
namespace {

constexpr const char* kNames[kSteps] = {"send",      "carry",   "look",   "read",   "reset", "see loss",
                                        "peer sees", "let go",  "dial",   "answer", "close", "vanish",
                                        "move",      "unheard", "retire", "shut",   "open"};

}  // namespace

std::string Move::ToString() const { return absl::StrCat(kNames[static_cast<int>(step)], " ", lane); }

World::World(int lanes) : lanes_at_start_(lanes) {
  for (int i = 0; i < lanes; ++i) open_lanes_.Open(static_cast<size_t>(i));
  for (int i = 0; i < kMessages; ++i) {
    payloads_[static_cast<size_t>(i)].assign(kMessageBytes, static_cast<char>('a' + i));
    SendRequest& request = requests_[static_cast<size_t>(i)];
    request.data = payloads_[static_cast<size_t>(i)].data();
    request.bytes = request.message_bytes = kMessageBytes;
    request.sequence = static_cast<uint64_t>(i);
    request.left.store(Units(kMessageBytes));
    striper_.Post(&request);
  }
}

bool World::Do(const Move& move) {
  Lane& lane = lanes_[static_cast<size_t>(move.lane)];
  const int index = move.lane;
  switch (move.step) {
    case Step::kSend:
      return Send(&lane);
    case Step::kCarry: {
      Socket& socket = lane.socket;
      if (socket.dead || gone_ || socket.in_flight.empty()) return false;
      const size_t bytes = std::min(kStepBytes, socket.in_flight.size());
      socket.in_kernel += socket.in_flight.substr(0, bytes);
      socket.in_flight.erase(0, bytes);
      return true;
    }
    case Step::kLook:
      if (lane.lost || lane.socket.dead || lane.held.empty()) return false;
      lane.held.Acked(static_cast<int64_t>(lane.socket.in_flight.size()));
      return true;
    case Step::kRead:
      if (gone_ || lane.answered || lane.socket.in_kernel.empty()) return false;
      Read(&lane);
      return true;
    case Step::kReset: {
      Socket& socket = lane.answered ? lane.next : lane.socket;
      if (socket.dead) return false;
      socket.dead = true;
      socket.in_flight.clear();
      // The dial has failed. One for a lane that was lost is made again.
      if (std::exchange(lane.answered, false) && sender_.absent(index)) lane.dialling = false;
      return true;
    }
    case Step::kSeeLoss:
      if (lane.lost || !lane.socket.dead || sender_.absent(index) || over()) return false;
      lane.lost = true;
      return Lose(index, LaneTable::Why::kDied);
    case Step::kPeerSees:
      if (gone_ || lane.answered || !lane.socket.dead || !receiver_.up(index)) return false;
      Read(&lane);
      if (MayBeClosed(index) && receiver_.Close(index, ++clock_)) return true;
      if (receiver_.Lose(index, LaneTable::Why::kDied, ++clock_) == LaneTable::Loss::kNoted) {
        receivers_.Lost(index, Arbiter::Loss::kDied);
      }
      return true;
    case Step::kLetGo:
      if (over() || !sender_.up(index)) return false;
      if (lane.socket.in_flight.empty() && sender_.state(index) == LaneState::kUp) return false;
      return Lose(index, LaneTable::Why::kLetGo);
    case Step::kDial:
      if (!lane.dialling || lane.answered || gone_) return false;
      // What has come is read, and the old socket is let go before the count is sent.
      Read(&lane);
      lane.socket.dead = true;
      lane.socket.in_flight.clear();
      receiver_.Back(index);
      (void)receiver_.TakeOpened(index);
      lane.next = Socket();
      lane.position = lane.received.size();
      lane.answered = true;
      receivers_.Back(index, {lane.position, false}, ++clock_);
      return true;
    case Step::kAnswer:
      return TakeAnswer(index, &lane);
    case Step::kClose:
    case Step::kVanish:
      if (index != 0 || gone_) return false;
      gone_ = true;
      Leave(move.step == Step::kClose);
      return true;
    case Step::kMove:
      return Piloted(index) && sender_.OrderMove(index);
    case Step::kUnheard:
      return Piloted(index) && sender_.state(index) != LaneState::kUnheard && sender_.NoteUnheard(index);
    case Step::kRetire:
      if (!Piloted(index) || lane.retiring || sender_.absent(index)) return false;
      sender_.CancelMove(index);
      lane.retiring = true;
      return true;
    case Step::kShut:
      if (over() || !lane.retiring || !sender_.up(index) || !lane.said || !lane.held.empty()) return false;
      if (!sender_.Close(index, ++clock_)) return false;
      lane.socket.dead = true;
      lane.lost = false;
      return true;
    case Step::kOpen:
      if (!Piloted(index) || !sender_.absent(index) || lane.dialling) return false;
      lane.retiring = false;
      lane.dialling = true;
      return true;
  }
  return false;
}

std::string World::Wrong() const {
  if (broken_) return "the sender can't go on where the peer says";
  for (int i = 0; i < kLanes; ++i) {
    const Lane& lane = lanes_[static_cast<size_t>(i)];
    const std::string socket = lane.received + lane.socket.in_kernel + lane.socket.in_flight;
    if (!lane.answered && lane.stream.compare(0, socket.size(), socket) != 0) {
      return absl::StrCat("lane ", i, ": what is read, or on its way, is not the stream");
    }
    if (lane.stream.compare(0, lane.received.size(), lane.received) != 0) {
      return absl::StrCat("lane ", i, ": the peer has other bytes than were sent");
    }
    if (lane.held.acked() > lane.received.size() + lane.socket.in_kernel.size()) {
      return absl::StrCat("lane ", i, ": more counts as acknowledged than the peer has");
    }
    if (sender_.lost(i) && !lane.dialling && !over()) return absl::StrCat("lane ", i, ": nobody dials it");
  }
  for (int i = 0; i < kLanes; ++i) {
    if (arbiter_.stuck_sockets(i) != lanes_[static_cast<size_t>(i)].stuck) {
      return absl::StrCat("lane ", i, ": ", arbiter_.stuck_sockets(i), " sockets count as vain");
    }
    if (receivers_.stuck_sockets(i) > 0)
      return absl::StrCat("lane ", i, ": the receiver, who dials none, counts sockets");
  }
  if (receivers_.stuck() != Stuck::kNone || receivers_.Unsettled(clock_)) return "the receiver waits for what it sends";
  if (receivers_.Overdue(receiver_.none_since_ns(), clock_)) return "the receiver gives up at once";
  for (const SendRequest& request : requests_) {
    if (request.done() && !Arrived(request))
      return absl::StrCat("message ", uint64_t{request.sequence}, " is done too early");
  }
  return "";
}

std::string World::Finish() {
  for (int round = 0; round < 100; ++round) {
    bool moved = false;
    for (int lane = 0; lane < kLanes; ++lane) {
      for (const Step step : {Step::kSeeLoss, Step::kPeerSees, Step::kDial, Step::kAnswer, Step::kSend, Step::kCarry,
                              Step::kRead, Step::kLook, Step::kShut, Step::kLetGo}) {
        // A lane that has what it needs is let go of only where it is to move.
        if (step == Step::kLetGo && !ToMove(lane)) continue;
        const size_t room = lanes_[static_cast<size_t>(lane)].held.room();
        const bool did = Do({step, lane});
        moved = moved || (step == Step::kLook ? lanes_[static_cast<size_t>(lane)].held.room() != room : did);
        const std::string wrong = Wrong();
        if (!wrong.empty()) return wrong;
      }
    }
    if (!moved) break;
  }
  if (gone_) return over() ? "" : "the sender does not know that its peer has left";
  for (const SendRequest& request : requests_) {
    if (!request.done()) return absl::StrCat("message ", uint64_t{request.sequence}, " never arrives");
  }
  for (int i = 0; i < kLanes; ++i) {
    const Lane& lane = lanes_[static_cast<size_t>(i)];
    const bool closed = i > 0 && sender_.absent(i) && receiver_.absent(i);
    if (!lane.held.empty() || lane.dialling || !(closed || (sender_.up(i) && receiver_.up(i)))) {
      return absl::StrCat("lane ", i, " is ", static_cast<int>(sender_.state(i)), " here and ",
                          static_cast<int>(receiver_.state(i)), " there");
    }
    if (lane.retiring && !closed) return absl::StrCat("lane ", i, " was to be closed, and is not");
    if (lane.received != lane.stream) return absl::StrCat("lane ", i, ": not all of the stream has come");
    for (int look = 0; look < 2; ++look) arbiter_.LookAtIdle(i, ++clock_);
    if (arbiter_.stuck_sockets(i) > 0) return absl::StrCat("lane ", i, ": all has come, and sockets count as vain");
    for (int look = 0; look < 2; ++look) receivers_.LookAtIdle(i, ++clock_);
  }
  if (arbiter_.Warns(clock_).lane >= 0 || receivers_.Warns(clock_).lane >= 0) return "all is well, and there is a WARN";
  if (budget_.left() != LaneBudget::kLanesMax - CountMade()) return "the budget is not what the lanes have taken";
  const ConnectionCounts tally = sender_.tally();
  if (tally.lost + tally.moved != tally.resumed) return "not every lane that was lost was resumed, once";
  return "";
}

std::string World::Digest() const {
  std::string digest = absl::StrCat(gone_, over(), striper_.left_bytes(), ";");
  for (int i = 0; i < kLanes; ++i) {
    const Lane& lane = lanes_[static_cast<size_t>(i)];
    absl::StrAppend(&digest, static_cast<int>(sender_.state(i)), static_cast<int>(receiver_.state(i)), ",",
                    lane.stream.size(), ",", lane.received.size(), ",", lane.socket.in_flight.size(), ",",
                    lane.socket.in_kernel.size(), ",", lane.socket.dead, lane.lost, lane.dialling, lane.answered, ",",
                    lane.held.acked(), ",", lane.held.cursor(), ",", lane.held.room(), ",", lane.stuck, ",",
                    lane.retiring, lane.said, ",", lane.said_end, ";");
  }
  for (const SendRequest& request : requests_) absl::StrAppend(&digest, request.done());
  return digest;
}

int World::CountMade() const {
  int made = 0;
  for (int i = 0; i < kLanes; ++i) made += sender_.made(i) ? 1 : 0;
  return made;
}

bool World::MayBeClosed(int index) const {
  const Lane& lane = lanes_[static_cast<size_t>(index)];
  if (index >= lanes_at_start_ && lane.received.empty()) return true;
  return lane.said_end > 0 && lane.said_end == lane.received.size();
}

bool World::Send(Lane* lane) {
  if (lane->lost || !sender_.up(static_cast<int>(lane - lanes_.data())) || over()) return false;
  HeldFrames& held = lane->held;
  if (held.resending()) {
    iovec iov[8];
    const int count = held.GatherAgain(iov, 8);
    size_t bytes = 0;
    for (int i = 0; i < count; ++i) {
      Give(lane, static_cast<const char*>(iov[i].iov_base), iov[i].iov_len);
      bytes += iov[i].iov_len;
    }
    held.SentAgain(bytes);
    return true;
  }
  if (lane->retiring) return SayClose(lane);
  Chunk chunk;
  if (held.room() == 0 || !striper_.Pull(kMessageBytes, 1, kMessageBytes, &chunk)) return false;
  char header[kHeaderBytes];
  EncodeChunkHeader(*chunk.request, chunk.offset, chunk.length, 0, header);
  const char* const payload = chunk.request->data + chunk.offset;
  held.Begin(header, {payload, chunk.length, 0}, chunk.request);
  chunk_ends_[uint64_t{chunk.request->sequence}] = {lane, lane->stream.size() + kHeaderBytes + chunk.length};
  lane->stream.append(header, kHeaderBytes);
  lane->stream.append(payload, chunk.length);
  Give(lane, header, kHeaderBytes);
  Give(lane, payload, chunk.length);
  held.Sent(kHeaderBytes + chunk.length);
  lane->said = false;
  return true;
}

bool World::SayClose(Lane* lane) {
  if (lane->said || lane->held.room() == 0) return false;
  const std::string header(kHeaderBytes, 'c');
  lane->held.Begin(header.data(), {}, nullptr);
  lane->stream += header;
  Give(lane, header.data(), header.size());
  lane->held.Sent(kHeaderBytes);
  lane->said = true;
  lane->said_end = lane->stream.size();
  return true;
}

void World::Give(Lane* lane, const char* data, size_t bytes) {
  if (!lane->socket.dead) lane->socket.in_flight.append(data, bytes);
}

bool World::Lose(int index, LaneTable::Why why) {
  const LaneTable::Loss loss = sender_.Lose(index, why, ++clock_);
  if (loss == LaneTable::Loss::kNoted) {
    lanes_[static_cast<size_t>(index)].dialling = true;
    arbiter_.Lost(index, why == LaneTable::Why::kDied ? Arbiter::Loss::kDied : Arbiter::Loss::kSilent);
  }
  return loss != LaneTable::Loss::kRefused;
}

bool World::TakeAnswer(int index, Lane* lane) {
  if (!lane->answered || over()) return false;
  if (!lane->held.Rewind(lane->position)) broken_ = true;
  lane->socket = std::exchange(lane->next, Socket());
  lane->answered = lane->dialling = lane->lost = false;
  sender_.Back(index);
  open_lanes_.Open(static_cast<size_t>(index));
  (void)sender_.TakeOpened(index);
  const bool owes = lane->held.resending();
  lane->stuck = owes && lane->position == lane->had ? lane->stuck + 1 : 0;
  lane->had = lane->position;
  arbiter_.Back(index, {lane->position, owes}, ++clock_);
  return true;
}

void World::Leave(bool tells) {
  std::vector<uint64_t> taken;
  for (Lane& lane : lanes_) {
    taken.push_back(lane.received.size());
    lane.answered = lane.dialling = false;
  }
  (void)sender_.PeerLeft(tells ? taken : std::vector<uint64_t>());
  receiver_.End();
  for (size_t i = 0; tells && i < taken.size(); ++i) (void)lanes_[i].held.PeerTook(taken[i]);
}

bool World::Arrived(const SendRequest& request) const {
  const auto& [lane, end] = chunk_ends_[uint64_t{request.sequence}];
  return lane != nullptr && lane->received.size() + lane->socket.in_kernel.size() >= end;
}

std::vector<bool> World::AtStart() const {
  std::vector<bool> have(kLanes, false);
  for (int i = 0; i < lanes_at_start_; ++i) have[static_cast<size_t>(i)] = true;
  return have;
}

}  // namespace lane_life
}  // namespace tcpx
