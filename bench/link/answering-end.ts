/** A program that answers the asks of the bench at the socket whose path it is given. */
import { systemClock } from "../../src/domain/clock.ts";
import { Link } from "../../src/process/link/link.ts";
import { listenAtSocket } from "../../src/process/link/unix-socket.ts";
import { answerOf, jsonKinds, type BenchAsks } from "./bench-asks.ts";

const listener = listenAtSocket(
  process.argv[2] ?? "",
  (channel) =>
    new Link<Record<never, never>, BenchAsks>({
      channel,
      clock: systemClock,
      hello: undefined,
      jsonKinds,
      handlers: { acquire: answerOf, cpu: usedMicroseconds },
      onOpen: () => undefined,
      onLost: () => listener.stop(),
    }),
);
console.log("listening");

function usedMicroseconds(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
