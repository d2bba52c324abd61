import { metricsOf } from "../support/metrics-of.ts";
import { expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { startOtlpReceiver, type ReceiverMood } from "../support/otlp-receiver.ts";
import { openUnreachablePort } from "../support/unreachable-port.ts";
import { until } from "../support/until.ts";

const hello = { model: "chat-model", messages: [{ role: "user", content: "Hello" }] };
const failure = "traces cannot be sent and are lost";

function otlp(url: string): Record<string, string> {
  return {
    telemetry: `{ log_level: info, log_format: json, otlp: { endpoint: "${url}", timeout: 200ms, queue: 64 } }`,
  };
}

async function call(gateway: TestGateway, times: number): Promise<void> {
  for (let done = 0; done < times; done += 50) {
    const responses = Array.from({ length: Math.min(50, times - done) }, async () => {
      const response = await gateway.post("/v1/chat/completions", hello);
      await response.text();
      return response.status;
    });
    expect(new Set(await Promise.all(responses))).toEqual(new Set([200]));
  }
}

/** The calls whose traces were sent, failed or dropped. */
async function countCalls({ adminUrl }: TestGateway): Promise<Record<string, number>> {
  const page = await metricsOf(adminUrl);
  const counts = page.matchAll(/^sluice_trace_calls_total\{result="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...counts].map(([, result = "", count]) => [result, Number(count)]));
}

test.each<ReceiverMood>(["throttle", "reject", "hang"])(
  "a collector that answers with %s affects no call, and what is lost is counted",
  async (mood) => {
    await using receiver = startOtlpReceiver();
    receiver.mood = mood;
    await using gateway = await startGateway({ sections: otlp(receiver.url) });
    await call(gateway, 300);
    let counts: Record<string, number> = {};
    while (Object.values(counts).reduce((sum, count) => sum + count, 0) < 300) {
      await Bun.sleep(20);
      counts = await countCalls(gateway);
    }
    expect(counts).toMatchObject({ sent: 0, failed: expect.any(Number) });
    expect(gateway.log.filter((line) => line.includes(failure))).toHaveLength(1);
    receiver.mood = "take";
    await call(gateway, 1);
    await until(() => receiver.spans.length > 0);
    await until(() => gateway.log.some((line) => line.includes("traces are sent again")));
  },
);

test("a gateway whose collector cannot be reached serves, and ends", async () => {
  await using unreachable = await openUnreachablePort();
  const { port } = unreachable;
  await using gateway = await startGateway({ sections: otlp(`http://127.0.0.1:${port}`) });
  await call(gateway, 100);
  await until(() => gateway.log.some((line) => line.includes(failure)));
});

test("what waits is sent when the gateway ends", async () => {
  await using receiver = startOtlpReceiver();
  const gateway = await startGateway({ sections: otlp(receiver.url) });
  await call(gateway, 20);
  await gateway[Symbol.asyncDispose]();
  const calls = receiver.spans.filter(({ kind }) => kind === "SPAN_KIND_SERVER");
  expect(calls).toHaveLength(20);
});

test("traces follow the configuration to another collector, and to none", async () => {
  await using one = startOtlpReceiver();
  await using other = startOtlpReceiver();
  await using gateway = await startGateway({ sections: otlp(one.url) });
  await call(gateway, 1);
  await until(() => one.spans.length === 3);
  await gateway.reconfigure(otlp(other.url));
  await call(gateway, 1);
  await until(() => other.spans.length === 3);
  await gateway.reconfigure({ telemetry: "{ log_level: info, log_format: json }" });
  await call(gateway, 1);
  await gateway[Symbol.asyncDispose]();
  expect([one.spans.length, other.spans.length]).toEqual([3, 3]);
});
