import { expect, test } from "bun:test";
import { startFaultProcess } from "../support/fault-process.ts";
import { chunk, startProvider } from "../provider/provider.ts";

const MiB = 1024 * 1024;
const streams = 24;
const bodyBytes = 4 * MiB;
const patienceMs = 120_000;

test.each(["chat/completions", "messages", "responses"])(
  "an open stream of %s does not keep the body of its request in memory",
  async (path) => {
    const first = new TextEncoder().encode(`data: ${JSON.stringify(chunk({ content: "Hi" }))}\n\n`);
    await using provider = startProvider(() => {
      const frames = new ReadableStream<Uint8Array>({ start: (stream) => stream.enqueue(first) });
      return new Response(frames, { headers: { "content-type": "text/event-stream" } });
    });
    await using fault = await startFaultProcess({
      upstreams: `{ provider: { kind: openai, base_url: "${provider.url}" } }`,
      models: `
  chat-model: { kind: chat, context_window: 100000000, targets: [{ upstream: provider, model: m }] }`,
    });
    const before = await fault.residentBytes();
    const turns = [{ role: "user", content: "x".repeat(bodyBytes) }];
    const body = {
      "chat/completions": { messages: turns },
      messages: { messages: turns, max_tokens: 10 },
      responses: { input: turns, store: false },
    }[path];
    const open: Response[] = [];
    for (let each = 0; each < streams; each += 1) {
      open.push(await fault.post({ model: "chat-model", stream: true, ...body }, path));
    }
    expect(open.map(({ status }) => status)).toEqual(open.map(() => 200));
    // Less than half of what their bodies would take; the collector takes its time.
    while ((await fault.residentBytes()) - before > (streams * bodyBytes) / 2) {
      await Bun.sleep(100);
    }
    for (const { body } of open) await body?.cancel();
  },
  patienceMs,
);
