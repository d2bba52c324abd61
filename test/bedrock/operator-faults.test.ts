import { metricsOf } from "../support/metrics-of.ts";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chatOf, errorOf } from "../support/bodies.ts";
import { startGateway, targetAt, type TestGateway } from "../support/gateway.ts";

/** What the provider calls an invalid request, and what is the operator's account, over HTTP. */

const faults = ["operation-not-allowed", "account-not-authorized", "channel-account"];

const target = (model: string): string => targetAt("bedrock", { model, family: "claude-4" });
const alias = (name: string, targets: readonly string[]): string => `
  ${name}:
    kind: chat
    context_window: 100000
    targets: [${targets.join()}]`;

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    kind: "bedrock",
    sections: {
      models: faults
        .flatMap((fault) => {
          const first = target(`fault-exception-${fault}`);
          const second = target("sound").replace("}", "}, priority: 2");
          return [alias(`${fault}-alone`, [first]), alias(`${fault}-first`, [first, second])];
        })
        .join(""),
    },
  });
});
afterAll(() => gateway[Symbol.asyncDispose]());

const ask = (model: string) =>
  gateway.post("/v1/chat/completions", {
    model,
    messages: [{ role: "user", content: "echo: one two" }],
  });

test.each(faults)(
  "%s goes to the next target, and is the caller's affair nowhere",
  async (fault) => {
    const { choices } = await chatOf(await ask(`${fault}-first`));
    expect(choices[0]?.message.content).toBe("one two");
    const response = await ask(`${fault}-alone`);
    const { code, message } = await errorOf(response);
    expect([response.status, code]).toEqual([503, "model_unavailable"]);
    expect(message).toContain("Please contact the operator.");
    const lines = gateway.log.filter((line) => line.includes(`fault-exception-${fault}`));
    expect(lines.filter((line) => line.includes('"hint"')).length).toBeGreaterThanOrEqual(2);
    expect(lines.join("\n")).toContain('"code":"ValidationException"');
    const metrics = await metricsOf(gateway.adminUrl);
    expect(metrics).toMatch(
      /sluice_attempt_failures_total\{[^}]*kind="bad-credential"[^}]*\} [1-9]/,
    );
  },
);
