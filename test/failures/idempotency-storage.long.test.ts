import { expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { errorOf, parseStream } from "../support/bodies.ts";
import {
  chat,
  startIdempotentGateway,
  StreamedAnswer,
  streamedChat,
  until,
  type IdempotentGateway,
} from "../support/idempotent-gateway.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { bearer } from "../support/operator.ts";
import { CanarySearch } from "./canary-search.ts";
import { removeFolder, spoilDatabase } from "./outage-gateway.ts";

const dayMs = 86_400_000;
const embedding = { path: "/v1/embeddings" };

async function withFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-idempotency-"));
  try {
    await run(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function send(bench: IdempotentGateway, ...call: Parameters<IdempotentGateway["send"]>) {
  const response = await bench.send(...call);
  const isReplayed = response.headers.get("idempotent-replayed") === "true";
  return { status: response.status, isReplayed, text: await response.text() };
}

test("no file contains a prompt, an answer or an Idempotency-Key, and all are replayed", async () => {
  await withFolder(async (folder) => {
    const search = new CanarySearch();
    await using bench = await startIdempotentGateway({ folder });
    const calls = [
      [search.make("key of a call"), chat(`echo: ${search.make("chat")}`), {}],
      [search.make("key of a stream"), streamedChat(`echo: ${search.make("stream")}`), {}],
      [
        search.make("key of embeddings"),
        { model: "embedding-model", input: search.make("input") },
        embedding,
      ],
    ] as const;
    for (const [key, body, more] of calls) {
      const first = await send(bench, key, body, more);
      expect(await send(bench, key, body, more)).toEqual({ ...first, isReplayed: true });
    }
    await bench.gateway.usage();
    expect(bench.keptAnswers()).toBe(3);
    // The write-ahead log is searched too; here its content is also in the file.
    search.searchFiles(folder);
    using database = new Database(bench.path);
    database.run("PRAGMA wal_checkpoint(TRUNCATE)");
    search.searchFiles(folder);
    search.searchFiles(bench.gateway.config.dataDir);
    search.search("log", bench.gateway.log.join("\n"));
    expect(search.hits).toEqual([]);
    expect(search.searchedBytes.get("sluice.db")).toBeGreaterThan(100_000);
    // The search finds texts that are stored on purpose.
    database.run("CREATE TABLE proof (text TEXT)");
    const [shown] = search.names;
    database.query("INSERT INTO proof VALUES (?)").run(calls[0][0]);
    search.searchFiles(folder);
    expect(search.hits.join()).toContain(shown ?? "");
  });
});

test("answers outlive the process; a call that its end cut is made anew", async () => {
  await withFolder(async (folder) => {
    let secret: ReturnType<typeof bearer>;
    let text: string;
    {
      await using bench = await startIdempotentGateway({
        folder,
        simulator: { tokensPerSecond: 100 },
      });
      secret = bearer(bench.gateway.key);
      text = (await send(bench, "kept", streamedChat("count: 5"))).text;
      const running = new StreamedAnswer(await bench.send("cut", streamedChat("count: 5000")));
      await running.readFrames(3);
    }
    await using bench = await startIdempotentGateway({ folder });
    const replayed = await send(bench, "kept", streamedChat("count: 5"), secret);
    expect(replayed).toEqual({ status: 200, isReplayed: true, text });
    expect(bench.upstreamCalls()).toBe(0);
    const anew = await send(bench, "cut", streamedChat("count: 5000"), secret);
    expect([anew.status, anew.isReplayed]).toEqual([200, false]);
    expect(parseStream(anew.text).isDone).toBe(true);
    expect(bench.upstreamCalls()).toBe(1);
  });
});

test.each([
  { what: "nonsense in the place of the database", take: spoilDatabase },
  { what: "a folder that is gone", take: removeFolder },
])(
  "with $what, calls with an Idempotency-Key get 503, and others continue",
  async ({ take }) => {
    await using bench = await startIdempotentGateway({ simulator: { tokensPerSecond: 50 } });
    const { gateway } = bench;
    const kept = await send(bench, "before", chat("count: 5"));
    expect(kept.status).toBe(200);
    await gateway.usage();
    const running = new StreamedAnswer(await bench.send("running", streamedChat("count: 60")));
    await running.readFrames(2);
    const putBack = take(bench.path);
    await until("the loss is seen", () =>
      gateway.log.some((line) => line.includes("the database is unavailable")),
    );
    const before = bench.upstreamCalls() + gateway.simulator.openCalls;
    for (const key of ["before", "new"]) {
      const response = await bench.send(key, chat("count: 5"));
      expect(response.status).toBe(503);
      expect(response.headers.get("retry-after")).toBe("5");
      expect(response.headers.get("retry-after-ms")).toBe("5000");
      expect(response.headers.get("x-should-retry")).toBe("true");
      expect((await errorOf(response)).code).toBe("model_unavailable");
    }
    expect(bench.upstreamCalls() + gateway.simulator.openCalls).toBe(before);
    const plain = await gateway.post("/v1/chat/completions", chat("count: 5"));
    expect(plain.status).toBe(200);
    await plain.text();
    // Running calls complete. Their answers cannot be stored, but the calls are not repeated either.
    const text = await running.readAll();
    expect(parseStream(text).isDone).toBe(true);
    expect((await bench.send("running", streamedChat("count: 60"))).status).toBe(503);
    putBack();
    let after = await send(bench, "before", chat("count: 5"));
    const deadline = performance.now() + 30_000;
    while (after.status === 503 && performance.now() < deadline) {
      await Bun.sleep(50);
      after = await send(bench, "before", chat("count: 5"));
    }
    expect(after).toEqual({ ...kept, isReplayed: true });
    const repeated = await send(bench, "running", streamedChat("count: 60"));
    expect(repeated).toEqual({ status: 200, isReplayed: true, text });
    await until("the answer that waited is stored", () => bench.keptAnswers() === 2);
  },
  90_000,
);

test("the store is bounded: the oldest answers are removed", async () => {
  const clock = new ManualClock({ wallMs: Date.now() });
  await using bench = await startIdempotentGateway({
    overrides: { clock },
    sections: { idempotency: "{ answer_limit: 128KiB, storage_limit: 1MiB }" },
  });
  // Six pieces of 16 KiB with their frames are about 100 KiB an answer.
  const body = chat("bulk: 6");
  for (let place = 0; place < 20; place += 1) {
    expect((await send(bench, `answer-${place}`, body)).isReplayed).toBe(false);
    clock.advance(1_000);
  }
  const kept = bench.keptAnswers();
  expect(kept).toBeGreaterThan(5);
  expect(kept).toBeLessThan(20);
  using database = new Database(bench.path, { readonly: true });
  const row = database
    .query<{ bytes: number; counted: number }, []>(
      `SELECT sum(length(body)) AS bytes, (SELECT sum(bytes) FROM call_reply_shares) AS counted
       FROM call_replies`,
    )
    .get();
  expect(row?.bytes).toBeLessThanOrEqual(1024 * 1024);
  expect(row?.counted).toBeLessThanOrEqual(1024 * 1024);
  expect(row?.counted).toBeGreaterThanOrEqual(row?.bytes ?? 0);
  expect((await send(bench, "answer-19", body)).isReplayed).toBe(true);
  expect((await send(bench, "answer-0", body)).isReplayed).toBe(false);
});

test("answers that are too old are removed from the database", async () => {
  const clock = new ManualClock({ wallMs: Date.now() });
  await using bench = await startIdempotentGateway({
    overrides: { clock },
    sections: { retention: "{ interval: 1s }" },
  });
  await send(bench, "old", chat("echo: hi"));
  clock.advance(dayMs / 2);
  await bench.gateway.app.admin.onKeysChanged();
  await send(bench, "young", chat("echo: hi"));
  expect(bench.keptAnswers()).toBe(2);
  clock.advance(dayMs / 2 + 1_000);
  await until("the old answer is removed", () => bench.keptAnswers() === 1);
  await bench.gateway.app.admin.onKeysChanged();
  expect((await send(bench, "young", chat("echo: hi"))).isReplayed).toBe(true);
});

test("a reload changes the lifetime of stored answers too", async () => {
  const clock = new ManualClock({ wallMs: Date.now() });
  const retention = "{ interval: 1s }";
  await using bench = await startIdempotentGateway({
    overrides: { clock },
    sections: { retention },
  });
  await send(bench, "stored", chat("echo: hi"));
  clock.advance(dayMs / 2);
  await bench.gateway.reconfigure({ idempotency: "{ keep: 1h }" });
  await until("the answer is removed", () => bench.keptAnswers() === 0);
});

test("answers that could not be stored are stored later, at the latest at the end of the process", async () => {
  await withFolder(async (folder) => {
    const refuse =
      "CREATE TRIGGER refuse BEFORE INSERT ON call_replies BEGIN SELECT RAISE(ABORT, 'no'); END";
    let secret: ReturnType<typeof bearer>;
    const first: Awaited<ReturnType<typeof send>>[] = [];
    {
      await using bench = await startIdempotentGateway({ folder });
      secret = bearer(bench.gateway.key);
      await bench.gateway.usage();
      using writer = new Database(bench.path);
      writer.run("PRAGMA busy_timeout = 5000");
      for (const key of ["during", "at the end"]) {
        writer.run(refuse);
        first.push(await send(bench, key.replaceAll(" ", "-"), chat(`write of ${key}`)));
        expect(bench.keptAnswers()).toBe(first.length - 1);
        writer.run("DROP TRIGGER refuse");
        if (first.length === 1) await until("it is stored", () => bench.keptAnswers() === 1);
      }
    }
    await using bench = await startIdempotentGateway({ folder });
    const again = [
      await send(bench, "during", chat("write of during"), secret),
      await send(bench, "at-the-end", chat("write of at the end"), secret),
    ];
    expect(again).toEqual(first.map((answer) => ({ ...answer, isReplayed: true })));
    expect(bench.upstreamCalls()).toBe(0);
  });
});

test("the answers of an erased account are removed", async () => {
  await using bench = await startIdempotentGateway({
    sections: { retention: "{ interval: 1s }" },
  });
  const { text } = await bench.gateway.createKey({ account: "leaving" });
  await send(bench, "theirs", chat("echo: hi"), bearer(text));
  await send(bench, "ours", chat("echo: hi"));
  expect(bench.keptAnswers()).toBe(2);
  const listed = await bench.gateway.admin("GET", "/admin/v1/accounts?name=leaving");
  const { data } = (await listed.json()) as { data: readonly { id: string; name: string }[] };
  const account = data.find(({ name }) => name === "leaving");
  const path = `/admin/v1/accounts/${account?.id}/erase`;
  const erased = await bench.gateway.admin("POST", path, { confirm: "leaving" });
  expect(erased.status).toBe(200);
  await until("the answer is removed", () => bench.keptAnswers() === 1);
  expect((await send(bench, "ours", chat("echo: hi"))).isReplayed).toBe(true);
});
