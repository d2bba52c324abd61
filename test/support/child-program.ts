#!/usr/bin/env bun
/**
 * A gateway process without a gateway in it: `child-program.ts PROCESSES DATA_DIR` answers its
 * process id at a port that it shares with the others, and fails when it is asked to.
 */
import { connectToParent } from "../../src/process/parent/parent-link.ts";

const [processes = "1", dataDir = ""] = process.argv.slice(2);
const link = connectToParent({
  onSignal: (signal) => {
    if (signal !== "SIGHUP") process.exit(0);
  },
  endNow: () => process.exit(1),
});
const { addresses } = await link.begun;
const [, port = "0"] = addresses;
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: Number(port),
  reusePort: true,
  fetch(request) {
    const wish = new URL(request.url).searchParams.get("fail");
    if (wish !== null) setTimeout(() => failWith(wish), 0);
    return new Response(String(process.pid), { headers: { connection: "close" } });
  },
});
process.on("uncaughtException", (thrown) => {
  link.tellFailure(thrown);
  process.exit(1);
});
link.tellSettings({
  dataDir,
  processes: Number(processes),
  ports: [],
  logLevel: "info",
  logFormat: "json",
  isReloadable: true,
});
link.tellStarted(port === "0" ? ["--port", String(server.port)] : []);
await link.replaced;
await server.stop();
process.exit(0);

function failWith(message: string): never {
  throw new RangeError(message);
}
