import { availableParallelism } from "node:os";
import { z } from "zod";
import { escapedSigns, nameOfDatabase } from "../../domain/addresses.ts";
import { Secret } from "../../domain/keys/secret.ts";
import { duration, flag, listenAddress, size, text, wholeNumber } from "../../settings/values.ts";

export const listenSchema = z
  .strictObject({
    data: listenAddress("Address of the data plane, which callers use.", "127.0.0.1:8080"),
    admin: listenAddress("Address of the control plane.", "127.0.0.1:8081"),
  })
  .refine(
    ({ data, admin }) =>
      data.port === 0 || data.port !== admin.port || data.hostname !== admin.hostname,
    { path: ["admin"], error: "must differ from listen.data" },
  )
  .prefault({})
  .describe("Addresses, as host:port. Port 0 takes any free port.");

const aboutUrl =
  "`sqlite:PATH`, `sqlite::memory:`, or `postgres://USER:PASSWORD@HOST:PORT/DATABASE` " +
  "for PostgreSQL 14 or newer. Default: the file `sluice.db` in `data_dir`.";

export const storageSchema = z
  .strictObject({
    url: text(aboutUrl)
      .transform((value, context) => {
        const message = storageProblem(value);
        if (message === undefined) return value;
        context.issues.push({ code: "custom", message, input: value });
        return z.NEVER;
      })
      .optional()
      .describe(aboutUrl),
    pool_size: wholeNumber(10, [4, 200]).describe(
      "Maximum connections of the gateway to PostgreSQL.",
    ),
  })
  .prefault({})
  .describe("Database of keys and usage.")
  .transform(({ url = "sqlite:", pool_size: poolSize }) => {
    if (!isPostgres(url)) return { backend: "sqlite" as const, path: url.slice("sqlite:".length) };
    const path = nameOfDatabase(url);
    return { backend: "postgres" as const, path, url: new Secret(url), poolSize };
  });

function isPostgres(url: string): boolean {
  return /^postgres(ql)?:/i.test(url);
}

function storageProblem(url: string): string | undefined {
  if (isPostgres(url)) {
    const isWhole = URL.canParse(url) && /^\/[^/]+$/.test(new URL(url).pathname);
    const form = `postgres://USER:PASSWORD@HOST:PORT/DATABASE${escapedSigns}`;
    return isWhole ? undefined : `must be ${form}`;
  }
  if (!url.startsWith("sqlite:")) return "must be sqlite:PATH, sqlite::memory: or postgres://...";
  if (url.startsWith("sqlite://")) return "must be sqlite:PATH, without slashes before the path";
  return url.length === 7 ? "must name a file: sqlite:PATH or sqlite::memory:" : undefined;
}

export const dataDirectorySchema = text(
  "Folder of the usage spool and of generated secrets.",
).prefault("./data");

export const streamsSchema = z
  .strictObject({
    keep_alive_interval: duration("15s", ["1s", "5m"]).describe(
      "Time without an event until a keep-alive.",
    ),
    keep_alive: z
      .enum(["comment", "chunk", "off"])
      .prefault("comment")
      .describe("An SSE comment, an empty chunk, or none."),
    hold_headers: duration("10s", ["0s", "10m"]).describe(
      "How long the headers of a stream wait for its first event.",
    ),
    write_timeout: duration("30s", ["1s", "10m"]).describe(
      "A stream, or answer of many vectors, is closed after its caller has not read for this " +
        "long.",
    ),
    usage_timeout: duration("5s", ["100ms", "1m"]).describe(
      "How long to wait for the token count after the caller of a finished answer has left.",
    ),
    malformed_event: z
      .enum(["skip", "end"])
      .prefault("skip")
      .describe("A malformed event is skipped, or ends the answer."),
  })
  .prefault({})
  .describe("Streamed answers.")
  .transform((streams) => ({
    keepAliveIntervalMs: streams.keep_alive_interval,
    keepAlive: streams.keep_alive,
    holdHeadersMs: streams.hold_headers,
    writeTimeoutMs: streams.write_timeout,
    malformedEvent: streams.malformed_event,
    usageTimeoutMs: streams.usage_timeout,
  }));

export const answersSchema = z
  .strictObject({
    chat_limit: size("32MiB", ["1MiB", "1GiB"]).describe(
      "Largest non-streamed answer of a chat model; a larger one is 400 `answer_too_large`.",
    ),
    chat_values: wholeNumber(8_000_000, [100_000, 1_000_000_000]).describe(
      "Maximum values of such an answer, as in `http.json_values`.",
    ),
    embedding_limit: size("256MiB", ["1MiB", "1GiB"]).describe(
      "Largest answer of an embedding model.",
    ),
  })
  .prefault({})
  .describe("Non-streamed answers of upstreams.")
  .transform((answers) => ({
    chatLimitBytes: answers.chat_limit,
    chatValues: answers.chat_values,
    embeddingLimitBytes: answers.embedding_limit,
  }));

export const shutdownSchema = z
  .strictObject({
    pre_stop: duration("5s", ["0s", "10m"]).describe(
      "How long new calls are still served while `/readyz` already fails, so that balancers " +
        "notice.",
    ),
    drain_timeout: duration("30s", ["0s", "1h"]).describe(
      "How long running calls may continue once new ones are refused.",
    ),
  })
  .prefault({})
  .describe("Shutdown.")
  .transform((shutdown) => ({
    preStopMs: shutdown.pre_stop,
    drainTimeoutMs: shutdown.drain_timeout,
  }));

const peppersAbout =
  "Secrets of at least 32 characters for digests of keys and checkpoints of the audit. " +
  "To rotate, put a new one first. Default: one is generated in `data_dir`.";

export const authSchema = z
  .strictObject({
    peppers: z
      .array(
        z
          .string()
          .min(32)
          .transform((value) => new Secret(value))
          .meta({ title: "secret", description: "A pepper." }),
      )
      .min(1)
      .max(10)
      .optional()
      .describe(peppersAbout),
    snapshot_max_age: duration("15m", ["1s", "24h"]).describe(
      "How long known keys work while the database cannot be read.",
    ),
    keep_snapshot: flag(true).describe(
      "Keeps digests of the keys in `data_dir`, for a start while PostgreSQL cannot be " +
        "reached.",
    ),
  })
  .prefault({})
  .describe("Authentication.")
  .transform((auth) => ({
    /** The first makes digests, all verify them; if empty, the data directory's pepper is used. */
    peppers: auth.peppers ?? [],
    snapshotMaxAgeMs: auth.snapshot_max_age,
    keepsSnapshot: auth.keep_snapshot,
  }));

export const upstreamRequestsSchema = wholeNumber(8192, [1, 65_336]).describe(
  "Maximum concurrent requests to upstreams in each process.",
);

const mostProcesses = 64;

export const processesSchema = z
  .union([z.literal("auto"), z.int().min(1).max(mostProcesses)], {
    error: "must be auto or a whole number from 1 to 64",
  })
  .default(1)
  .describe("Gateway processes; `auto`: one per core. Several need a server in `limits.store`.")
  .transform((processes) =>
    processes === "auto" ? Math.min(availableParallelism(), mostProcesses) : processes,
  );
