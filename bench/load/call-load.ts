/**
 * The bundled load generator, for machines without wrk and for loads shorter than a second: a
 * program that takes the load as JSON and prints the result as JSON.
 */
import { z } from "zod";
import { quantile } from "../statistics.ts";
import { AnswerReader } from "./answer-reader.ts";
import type { CallResult } from "./drive-calls.ts";
import { requestBytes, RequestSender } from "./http-request.ts";

const loadSchema = z.strictObject({
  destination: z.object({ port: z.int(), headers: z.record(z.string(), z.string()) }),
  request: z.strictObject({ path: z.string(), body: z.string() }),
  connections: z.int().positive(),
  durationMs: z.number().positive(),
});

type Load = z.infer<typeof loadSchema>;

console.log(JSON.stringify(await runLoad(loadSchema.parse(JSON.parse(process.argv[2] ?? "")))));

async function runLoad(load: Load): Promise<CallResult> {
  const bytes = requestBytes(load.request, load.destination);
  const startedAt = performance.now();
  const shared: Shared = { bytes, endsAt: startedAt + load.durationMs, latencies: [], failures: 0 };
  await Promise.all(Array.from({ length: load.connections }, () => call(load, shared)));
  const sorted = Float64Array.from(shared.latencies).sort();
  return {
    calls: sorted.length,
    microseconds: (performance.now() - startedAt) * 1_000,
    failures: shared.failures,
    p50: quantile(sorted, 0.5),
    p99: quantile(sorted, 0.99),
  };
}

interface Shared {
  readonly bytes: Buffer;
  readonly endsAt: number;
  /** In microseconds. */
  readonly latencies: number[];
  failures: number;
}

/** One connection, which calls until the time is over. */
function call({ destination }: Load, shared: Shared): Promise<void> {
  const answer = new AnswerReader();
  const sender = new RequestSender();
  let sentAt = 0;
  return new Promise((resolve, reject) => {
    const send = (socket: Bun.Socket): void => {
      sentAt = performance.now();
      sender.send(shared.bytes, socket);
    };
    const connecting = Bun.connect({
      hostname: "127.0.0.1",
      port: destination.port,
      socket: {
        open: send,
        drain: (socket) => sender.drained(socket),
        data(socket, bytes) {
          if (!answer.push(bytes)) return;
          const now = performance.now();
          shared.latencies.push((now - sentAt) * 1_000);
          if (answer.status !== 200) shared.failures += 1;
          if (now >= shared.endsAt) socket.end();
          else send(socket);
        },
        close: () => resolve(),
        error: (_, error) => reject(error),
      },
    });
    connecting.catch(reject);
  });
}
