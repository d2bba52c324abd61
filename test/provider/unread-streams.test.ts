import { expect, test } from "bun:test";
import { errorOf } from "../support/bodies.ts";
import { RawConnection } from "../http/raw-connection.ts";
import { chunk, gatewayOf, startProvider, streamedText } from "./provider.ts";

const path = "/v1/chat/completions";
const body = JSON.stringify({
  model: "chat-model",
  stream: true,
  messages: [{ role: "user", content: "Hi" }],
});

/** As much as its reader takes. */
function endless(): Response {
  const frame = `data: ${JSON.stringify(chunk({ content: "y".repeat(2_000) }))}\n\n`;
  const piece = new TextEncoder().encode(frame.repeat(32));
  const frames = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(piece),
  });
  return new Response(frames, { headers: { "content-type": "text/event-stream" } });
}

async function openUnread(port: number, key: string): Promise<RawConnection> {
  const connection = await RawConnection.open(port);
  connection.write(
    `POST ${path} HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer ${key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  connection.pause();
  return connection;
}

test("an account that leaves streams unread is refused further calls, others are not, and its streams go on", async () => {
  await using provider = startProvider(endless);
  await using gateway = await gatewayOf([provider], {
    sections: {
      http: "{ body_limit: 64KiB, decompressed_limit: 64KiB, body_memory: 1MiB, body_memory_per_key: 1MiB }",
    },
  });
  const other = { authorization: `Bearer ${(await gateway.createKey({ account: "other" })).text}` };
  const unread: RawConnection[] = [];
  try {
    for (let each = 0; each < 4; each += 1) {
      unread.push(await openUnread(gateway.port, gateway.key));
    }
    while (provider.requests.length < 4) await Bun.sleep(5);
    provider.answers(() => streamedText("Hello"));
    let refused: Response;
    do {
      refused = await gateway.post(path, body);
      if (refused.status === 200) await refused.text();
      await Bun.sleep(10);
    } while (refused.status === 200);
    const { code, message } = await errorOf(refused);
    expect([refused.status, code]).toEqual([503, "model_unavailable"]);
    expect(message).toContain("unread");
    expect((await gateway.post(path, body, { headers: other })).status).toBe(200);
    // More than what the system holds arrives once they are read.
    await Promise.all(unread.map((connection) => connection.readOn()));
  } finally {
    for (const connection of unread) connection[Symbol.dispose]();
  }
  let served: Response;
  do {
    served = await gateway.post(path, body);
    await served.text();
  } while (served.status !== 200);
});
