import { metricsOf } from "../support/metrics-of.ts";
import { expect, test } from "bun:test";
import { startGateway } from "../support/gateway.ts";
import {
  startOtlpReceiver,
  type OtlpReceiver,
  type ReceivedMetric,
} from "../support/otlp-receiver.ts";
import { until } from "../support/until.ts";
import { seriesOf } from "./metrics-page.ts";

const hello = { model: "chat-model", messages: [{ role: "user", content: "Hello" }] };

function otlp(url: string): Record<string, string> {
  const settings = `{ endpoint: "${url}", traces: false, metrics_interval: 1s, timeout: 500ms }`;
  return { telemetry: `{ log_level: info, log_format: json, otlp: ${settings} }` };
}

function newest({ metrics }: OtlpReceiver, name: string): ReceivedMetric | undefined {
  return metrics.findLast((metric) => metric.name === name);
}

function points(metric: ReceivedMetric | undefined) {
  const { gauge, sum, histogram } = metric ?? {};
  return (gauge ?? sum ?? histogram)?.dataPoints ?? [];
}

test("the metrics of the page are sent with their names, types, labels and values", async () => {
  await using receiver = startOtlpReceiver();
  await using gateway = await startGateway({ sections: otlp(receiver.url) });
  for (const stream of [false, true, true]) {
    await (await gateway.post("/v1/chat/completions", { ...hello, stream })).text();
  }
  const count = (): number =>
    points(newest(receiver, "sluice_calls_total")).reduce(
      (sum, { asDouble = 0 }) => sum + asDouble,
      0,
    );
  await until(() => count() === 3);
  const calls = newest(receiver, "sluice_calls_total");
  expect(calls?.sum).toMatchObject({
    isMonotonic: true,
    aggregationTemporality: "AGGREGATION_TEMPORALITY_CUMULATIVE",
  });
  expect(points(calls)[0]?.attributes).toEqual({
    environment: "test",
    model: "chat-model",
    dialect: "chat",
    status: "200",
    outcome: "completed",
  });
  const page = await metricsOf(gateway.adminUrl);
  const expected = seriesOf(page).map((series) =>
    series.replace(/\{.*/, "").replace(/_(bucket|sum|count)$/, ""),
  );
  const names = new Set(receiver.metrics.map(({ name }) => name));
  expect(expected.filter((name) => !names.has(name))).toEqual([]);
  const duration = newest(receiver, "gen_ai.server.request.duration");
  expect(duration?.unit).toBe("s");
  const streamed = points(duration).find(({ attributes }) => attributes["gen_ai.request.stream"]);
  expect(streamed).toMatchObject({
    count: 2,
    attributes: {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "sluice",
      "gen_ai.request.model": "chat-model",
    },
  });
  const { bucketCounts = [], explicitBounds = [] } = streamed ?? {};
  expect(bucketCounts).toHaveLength(explicitBounds.length + 1);
  expect(bucketCounts.reduce((sum, each) => sum + each, 0)).toBe(2);
  expect(points(newest(receiver, "gen_ai.server.time_to_first_token"))[0]?.count).toBe(3);
});

test("a collector that refuses metrics is logged once, and gets the counts when it works again", async () => {
  await using receiver = startOtlpReceiver();
  receiver.mood = "reject";
  await using gateway = await startGateway({ sections: otlp(receiver.url) });
  await (await gateway.post("/v1/chat/completions", hello)).text();
  await until(() => receiver.headers.length > 1);
  receiver.mood = "take";
  await until(() => points(newest(receiver, "sluice_calls_total")).length > 0);
  await until(() => gateway.log.some((line) => line.includes("metrics are sent again")));
  expect(gateway.log.filter((line) => line.includes("metrics cannot be sent"))).toHaveLength(1);
});

test("the last values are sent when the gateway ends", async () => {
  await using receiver = startOtlpReceiver();
  const settings = `{ endpoint: "${receiver.url}", traces: false, metrics_interval: 1h }`;
  const gateway = await startGateway({ sections: { telemetry: `{ otlp: ${settings} }` } });
  await (await gateway.post("/v1/chat/completions", hello)).text();
  await gateway[Symbol.asyncDispose]();
  expect(points(newest(receiver, "sluice_calls_total"))).toHaveLength(1);
});
