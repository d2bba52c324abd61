/**
 * Opens streams and counts events, because wrk only counts answers: a program that takes a load as
 * JSON and prints one line when every stream has begun and one when all have ended.
 */
import { z } from "zod";
import { quantile } from "../statistics.ts";
import { endsChunks } from "./answer-reader.ts";
import { countEvents, saysDone } from "./events.ts";
import { requestBytes, RequestSender } from "./http-request.ts";

const loadSchema = z.strictObject({
  destination: z.object({ port: z.int(), headers: z.record(z.string(), z.string()) }),
  request: z.strictObject({ path: z.string(), body: z.string() }),
  streams: z.int().positive(),
  /** The time over which the streams are opened, so that their chunks do not coincide. */
  openWithinMs: z.number(),
});

type Load = z.infer<typeof loadSchema>;

const counts = await runLoad(loadSchema.parse(JSON.parse(process.argv[2] ?? "")));
print(counts);

interface Counts {
  begun: number;
  /** Streams that ended with `[DONE]`. */
  whole: number;
  events: number;
  /** Reads from the network that contained events. */
  reads: number;
  /** How long each stream waited for its first event. */
  readonly firstMs: number[];
}

function print({ firstMs, ...counts }: Counts): void {
  const firstP99Ms = quantile(Float64Array.from(firstMs).sort(), 0.99);
  console.log(JSON.stringify({ ...counts, firstP99Ms }));
}

async function runLoad(load: Load): Promise<Counts> {
  const bytes = requestBytes(load.request, load.destination);
  const counts: Counts = { begun: 0, whole: 0, events: 0, reads: 0, firstMs: [] };
  const onBegun = (waitedMs: number): void => {
    counts.firstMs.push(waitedMs);
    counts.begun += 1;
    if (counts.begun === load.streams) print(counts);
  };
  const startedAt = performance.now();
  const streams: Promise<void>[] = [];
  for (let index = 0; index < load.streams; index += 1) {
    const opensAt = startedAt + (index / load.streams) * load.openWithinMs;
    const waitMs = opensAt - performance.now();
    if (waitMs > 0) await Bun.sleep(waitMs);
    streams.push(follow({ load, bytes, counts, onBegun }));
  }
  await Promise.all(streams);
  return counts;
}

interface Follower {
  readonly load: Load;
  readonly bytes: Buffer;
  readonly counts: Counts;
  readonly onBegun: (waitedMs: number) => void;
}

/** Runs one stream on its own connection to its end. */
function follow({ load, bytes, counts, onBegun }: Follower): Promise<void> {
  const sender = new RequestSender();
  let hasBegun = false;
  let sentAt = 0;
  return new Promise((resolve, reject) => {
    const connecting = Bun.connect({
      hostname: "127.0.0.1",
      port: load.destination.port,
      socket: {
        open(socket) {
          sentAt = performance.now();
          sender.send(bytes, socket);
        },
        drain: (socket) => sender.drained(socket),
        data(socket, received) {
          const events = countEvents(received);
          if (events === 0 && !endsChunks(received)) return;
          counts.events += events;
          if (events > 0) counts.reads += 1;
          if (!hasBegun) onBegun(performance.now() - sentAt);
          hasBegun = true;
          if (saysDone(received)) counts.whole += 1;
          if (endsChunks(received)) socket.end();
        },
        close: () => resolve(),
        error: (_, error) => reject(error),
      },
    });
    connecting.catch(reject);
  });
}
