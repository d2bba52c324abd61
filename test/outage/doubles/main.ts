/**
 * Upstream doubles in a separate process. Takes their number as its argument, prints one line of
 * JSON with their ports and the port of the control server, and ends when its input does.
 */
import { faults } from "./faults.ts";
import { UpstreamDouble } from "./upstream-double.ts";

const doubles = Array.from({ length: Number(process.argv[2]) }, openDouble);
const control = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: answerControl });
process.stdout.write(
  `${JSON.stringify({ control: control.port, ports: doubles.map(({ port }) => port) })}\n`,
);
for await (const _ of Bun.stdin.stream()) continue;
await control.stop(true);
for (const double of doubles) double.close();

/**
 * Below the range from which the system takes the ports of outgoing connections: the port of a
 * double that refuses connections for a while must still be there afterwards.
 */
function openDouble(): UpstreamDouble {
  for (let left = 100; ; left -= 1) {
    try {
      return new UpstreamDouble(10_000 + Math.floor(Math.random() * 20_000));
    } catch (error) {
      if (left === 0) throw error;
    }
  }
}

/** `/INDEX`: what was seen; `/INDEX/FAULT` and `/INDEX/repair`: change it, with the time. */
function answerControl(request: Request): Response {
  const [, index = "", action = ""] = new URL(request.url).pathname.split("/");
  const double = doubles[Number(index)];
  if (double === undefined) return new Response("no such double", { status: 404 });
  const fault = faults.find((name) => name === action);
  if (fault !== undefined) double.break(fault);
  else if (action === "repair") double.repair();
  else if (action !== "") return new Response("no such fault", { status: 404 });
  return Response.json({ now: Date.now(), failedAt: double.failedAt });
}
