import { expect, test } from "bun:test";
import { createFolder } from "../cli/sluice-folder.ts";
import { until } from "../support/ledger-truth-process.ts";
import { startServing, type ServingProcess } from "../support/sluice-process.ts";

const introduction = "Try it with curl";

async function call(gateway: ServingProcess): Promise<number> {
  const [, key = ""] = /API key {2}(\S+)/.exec(gateway.text()) ?? [];
  const response = await fetch(`${gateway.dataUrl}/v1/embeddings`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "embed-text-v2", input: "text" }),
  });
  await response.text();
  return response.status;
}

/** Calls counted; undefined while there is no page. */
async function countedCalls({ adminUrl }: ServingProcess): Promise<number | undefined> {
  const page = await fetch(`${adminUrl}/metrics`).then(
    (response) => response.text(),
    () => undefined,
  );
  const found = page?.matchAll(/^sluice_calls_total\{[^}]*\} (\d+)$/gm);
  const counts = [...(found ?? [])].map(([, count]) => Number(count));
  return counts.length === 0 ? undefined : counts.reduce((sum, count) => sum + count);
}

function timesIn(text: string, part: string): number {
  return text.split(part).length - 1;
}

function tokensIn(text: string): readonly string[] {
  return [...text.matchAll(/one-time token (\S+)/g)].map(([, token = ""]) => token);
}

test("a process that is started again introduces nothing again, and counts from 0", async () => {
  using folder = createFolder({ isOffline: false });
  // With a listener on loopback, there would be an operator, and no token.
  const anyPort = ["--data", "127.0.0.1:0", "--admin", "0.0.0.0:0"];
  await using gateway = await startServing(["--data-dir", folder.path, ...anyPort]);
  await until("it is introduced", async () => gateway.text().includes("process.stdout.write"));
  expect(await call(gateway)).toBe(200);
  await until("it is counted", async () => (await countedCalls(gateway)) === 1);
  const { processPid } = gateway;
  process.kill(processPid, "SIGKILL");
  await until("another one serves", async () => {
    const ready = await fetch(`${gateway.dataUrl}/readyz`).catch(() => undefined);
    return ready?.ok === true && ![processPid, gateway.pid].includes(gateway.processPid);
  });
  expect(await call(gateway)).toBe(200);
  await until("its call is counted", async () => (await countedCalls(gateway)) === 1);
  // The next one prints a token of its own.
  await until("there is another token", async () => tokensIn(gateway.text()).length === 2);
  const token = tokensIn(gateway.text()).at(-1);
  const made = await fetch(`${gateway.adminUrl}/admin/v1/bootstrap`, {
    method: "POST",
    headers: { "content-type": "application/json", origin: gateway.adminUrl },
    body: JSON.stringify({ token, email: "ada@example.com", password: "an uncommon password 71" }),
  });
  expect(made.status).toBe(201);
  expect(timesIn(gateway.text(), introduction)).toBe(1);
});
