import { expect, test } from "bun:test";
import { startSimulator } from "../../simulator/simulator.ts";
import { startServing } from "../support/sluice-process.ts";
import { createFolder } from "./sluice-folder.ts";

test("the command line tells of a plan in audit, and of what it would have refused", async () => {
  using folder = createFolder({ isOffline: false });
  await using simulator = startSimulator();
  const config = await folder.write(
    "sluice.yaml",
    `data_dir: ${folder.path}
listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
auth: { peppers: ["a pepper for tests that is long enough"] }
environments: [{ name: test, hosts: ["*"], models: ["*"] }]
upstreams: { simulator: { kind: openai, base_url: "${simulator.url}" } }
models:
  chat-model: { kind: chat, context_window: 10000, targets: [{ upstream: simulator, model: simulated }] }
plans:
  tried: { mode: audit, requests_per_minute: 1, tokens_per_minute: 9000, token_weights: { output: 2.5 } }
  standard: { token_weights: bedrock }
`,
  );
  await using gateway = await startServing(["--config", config]);
  const plans = await folder.run("plans");
  expect(plans.output).toMatch(/tried +1 +9000 +cached 1, cache write 1, output 2.5 +audit/);
  expect(plans.output).toMatch(/standard .* cached 0, cache write 1, output by model +enforce/);
  expect(plans.output).toMatch(/pilot +60 +100000 +1 each +enforce/);

  await folder.json("accounts", "create", "Trial", "--plans", "tried");
  await folder.json(
    "applications",
    "create",
    "search",
    "--account",
    "Trial",
    "--environment",
    "test",
  );
  const { api_key: key } = await folder.json(
    "keys",
    "create",
    "--application",
    "search",
    "--plan",
    "tried",
  );
  const ask = async (): Promise<string> => {
    const answer = await fetch(`${gateway.dataUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${String(key)}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "chat-model", messages: [{ role: "user", content: "Hello" }] }),
    });
    await answer.text();
    expect(answer.status).toBe(200);
    return answer.headers.get("x-request-id") ?? "";
  };
  await ask();
  const id = await ask();
  let explained = await folder.run("explain", id);
  while (!explained.output.includes("did not refuse")) {
    await Bun.sleep(50);
    explained = await folder.run("explain", id);
  }
  expect(explained.output).toContain("The gateway did not refuse this call.");
  expect(explained.output).toContain(
    "Would have been refused with 429 rate_limit_exceeded (the caller saw 200)",
  );
  expect(explained.output).toContain("Not refused, because plan tried is in audit.");
  expect(explained.output).toMatch(/Rule +requests_per_minute/);
  expect((await folder.run("refusals")).output).toMatch(
    new RegExp(`${id} +200 \\(429\\) +requests_per_minute`),
  );
  const noTag = await folder.run("usage", "--by", "tag:nosuch");
  expect(noTag.errors).toContain("No call here has the tag nosuch");
  const byName = await folder.run("usage", "calls", "--end-user", "bob");
  expect(byName.errors).toContain("accounts end-users ACCOUNT --names bob`");
  const erased = await folder.run("accounts", "erase-end-user", "Trial", "--name", "bob");
  expect(erased.errors).toContain("No stored call of the account has this end user.");
  const json = await folder.json("explain", id);
  expect(json).toMatchObject({ id, status: 200, is_audited: true, rule: "requests_per_minute" });
}, 180_000);
