import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { clientHarness, nextPiece } from "../../../test/support/client-harness.ts";
import { rawServer, type RawPeer } from "../../../test/support/raw-server.ts";
import { Random } from "../../../test/simulation/random.ts";

const streams = 20_000;
const atOnce = 100;
const piece = "5\r\nhello\r\n";

const openFiles = (): number => readdirSync("/proc/self/fd").length;

test(`${streams} streams that either side cuts leave no descriptor and no memory`, async () => {
  const random = new Random(20_261_123);
  using server = rawServer({ onRequest: (peer) => void answerInPart(peer, random) });
  const { send } = clientHarness();
  const outcomes = { whole: 0, cut: 0, left: 0 };
  const runOne = async (): Promise<void> => {
    const { answer, cancel } = send(server.url);
    const readsLeft = random.chance(0.3) ? random.whole(0, 3) : Infinity;
    try {
      const response = await answer;
      for (let reads = 0; ; reads += 1) {
        if (reads >= readsLeft) {
          outcomes.left += 1;
          return cancel();
        }
        if ((await nextPiece(response)) === undefined) break;
      }
      outcomes.whole += 1;
    } catch {
      outcomes.cut += 1;
    }
  };
  const runMany = async (count: number): Promise<void> => {
    let left = count;
    const worker = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        await runOne();
      }
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
  };
  await runMany(streams / 4);
  const usedBefore = usedBytes();
  await runMany((streams * 3) / 4);
  expect(Object.values(outcomes).every((count) => count > streams / 100)).toBe(true);
  // The test's own record of connections grows as well.
  expect((usedBytes() - usedBefore) / streams).toBeLessThan(2_000);
  const peers = server.peers.filter(({ isClosed }) => !isClosed);
  expect(peers.length).toBeLessThanOrEqual(atOnce);
  // Both ends of the connections that are kept.
  expect(openFiles()).toBeLessThan(2 * atOnce + 100);
}, 300_000);

function usedBytes(): number {
  Bun.gc(true);
  return process.memoryUsage().heapUsed;
}

async function answerInPart(peer: RawPeer, random: Random): Promise<void> {
  if (random.chance(0.05)) return peer.reset();
  peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  const pieces = random.whole(0, 4);
  for (let index = 0; index < pieces; index += 1) {
    if (random.chance(0.1)) return random.chance(0.5) ? peer.reset() : peer.end();
    peer.write(piece);
    if (random.chance(0.2)) await Bun.sleep(1);
  }
  peer.write("0\r\n\r\n");
}
