/** A program that decides about limits at the socket whose path it is given, as control does. */
import { systemClock } from "../../src/domain/clock.ts";
import { Leases } from "../../src/process/control/coordination/leases.ts";
import { limitHandlers } from "../../src/process/control/coordination/limit-handlers.ts";
import { Member } from "../../src/process/control/coordination/member.ts";
import { Link } from "../../src/process/link/link.ts";
import { jsonKinds, type LimitMessages } from "../../src/process/link/messages.ts";
import { listenAtSocket } from "../../src/process/link/unix-socket.ts";
import { limitStoreBounds } from "../../src/process/wiring/build-services.ts";
import { createMemoryLimitStore } from "../../src/store/coordinator/memory/limit-store.ts";
import type { CpuMessages } from "./cpu-messages.ts";

const member = new Member();
member.admit();
const limits = createMemoryLimitStore({
  clock: systemClock,
  random: Math.random,
  ...limitStoreBounds,
});
const now = (): number => systemClock.monotonic();
const leases = new Leases({ store: limits, now, workers: () => 2 }).ofWorker(() => undefined);
const listener = listenAtSocket(
  process.argv[2] ?? "",
  (channel) =>
    new Link<Record<never, never>, LimitMessages & CpuMessages>({
      channel,
      clock: systemClock,
      hello: undefined,
      jsonKinds,
      handlers: { ...limitHandlers(limits, leases, member), cpu: usedMicroseconds },
      onOpen: () => undefined,
      onLost: () => listener.stop(),
    }),
);
console.log("listening");

function usedMicroseconds(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
