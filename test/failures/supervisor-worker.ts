#!/usr/bin/env bun
/**
 * A worker without a gateway: `supervisor-worker.ts WORKERS DATA_DIR [standby]` answers its process
 * id at a port shared with the others, and fails on request.
 */
import { connectToSupervisor } from "../../src/process/supervisor/supervisor-link.ts";

const [workers = "1", dataDir = "", standby = ""] = process.argv.slice(2);
const link = connectToSupervisor({
  onSignal: (signal) => {
    if (signal !== "SIGHUP") process.exit(0);
  },
  endNow: () => process.exit(1),
});
const [, port = "0"] = await link.begun;
link.tellSettings({
  dataDir,
  workers: Number(workers),
  logLevel: "info",
  logFormat: "json",
  isReloadable: true,
  hasStandby: standby === "standby",
});
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
link.tellStarted(port === "0" ? ["--port", String(server.port)] : []);

function failWith(message: string): never {
  throw new RangeError(message);
}
