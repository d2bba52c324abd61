import { connect } from "node:net";
import { parentPort, workerData } from "node:worker_threads";

/**
 * Asks a gateway for nothing, over and over on one connection, in a thread of its own, and keeps the
 * longest time that an answer took. Any message asks for that time and begins anew.
 */
const { port } = workerData as { readonly port: number };
const request = "GET /healthz HTTP/1.1\r\nHost: a.example\r\n\r\n";
let sentAt = 0;
let longestMs = 0;

const socket = connect(port, "127.0.0.1", ask);
socket.setNoDelay(true);
socket.on("data", () => {
  longestMs = Math.max(longestMs, performance.now() - sentAt);
  setTimeout(ask, 1);
});
socket.on("error", () => process.exit());
parentPort?.on("message", () => {
  // A gateway that is held at the moment has not answered yet.
  parentPort?.postMessage(Math.max(longestMs, performance.now() - sentAt - 2));
  longestMs = 0;
});

function ask(): void {
  sentAt = performance.now();
  socket.write(request);
}
