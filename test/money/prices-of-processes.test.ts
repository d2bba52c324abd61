import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { readLocalAccess } from "../../src/control/sign-in/bootstrap/local-access.ts";
import { makeProcessFolder } from "../failures/outage-process.ts";
import { until } from "../support/ledger-truth-process.ts";
import { startServing } from "../support/sluice-process.ts";
import { startValkey, valkeyProgram } from "../support/valkey-server.ts";

interface Calls {
  readonly data: readonly { readonly price_version: number | null; readonly cost_usd: string }[];
}

const priceOf = (input: number): string =>
  `prices: [{ provider: 127.0.0.1, model: simulated-embedding, input: ${input} }]`;

test.skipIf(valkeyProgram === null)(
  "both processes price calls by each version, also when its publisher was killed",
  async () => {
    await using limits = await startValkey();
    const settings = `limits: { store: "${limits.url}" }\n${priceOf(1)}`;
    await using folder = makeProcessFolder({ processes: 2, settings });
    await using gateway = await startServing(["--config", folder.configPath]);
    const admin = async (method: string, path: string, body?: unknown): Promise<unknown> => {
      const { url, token } = readLocalAccess(folder.dataDir) ?? { url: "", token: "" };
      const answer = await fetch(`${url}/admin/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return answer.json();
    };
    const leaders = async (): Promise<readonly { leads: boolean; pid: number }[]> =>
      ((await admin("GET", "/status").catch(() => undefined)) as { data?: [] })?.data ?? [];
    await until("both processes serve", async () => (await leaders()).length === 2);
    const account = (await admin("POST", "/accounts", { name: "a" })) as { id: string };
    const application = (await admin("POST", "/applications", {
      account_id: account.id,
      environment: "production",
      name: "x",
    })) as { id: string };
    const key = { application_id: application.id, plan: "standard" };
    const issued = (await admin("POST", "/keys", key)) as { api_key: string };
    /** Each on a connection of its own, so that both processes get some. */
    const callTwenty = async (): Promise<void> => {
      const answers = Array.from({ length: 20 }, () =>
        fetch(`${gateway.dataUrl}/v1/embeddings`, {
          method: "POST",
          headers: {
            authorization: `Bearer ${issued.api_key}`,
            "content-type": "application/json",
            connection: "close",
          },
          body: JSON.stringify({ model: "embed-text-v2", input: "hi" }),
        }),
      );
      for (const answer of await Promise.all(answers)) expect(answer.status).toBe(200);
    };
    let made = 0;
    const lastTwenty = async (): Promise<Calls["data"]> => {
      await callTwenty();
      made += 20;
      let rows: Calls["data"] = [];
      await until("the calls are stored", async () => {
        rows = ((await admin("GET", "/usage/calls?limit=500")) as Calls).data ?? [];
        return rows.length === made;
      });
      return rows.slice(0, 20);
    };
    const versionsOf = (rows: Calls["data"]) => [...new Set(rows.map((row) => row.price_version))];
    expect(versionsOf(await lastTwenty())).toEqual([1]);
    const publish = async (from: number, to: number): Promise<void> => {
      const text = readFileSync(folder.configPath, "utf8");
      writeFileSync(folder.configPath, text.replace(priceOf(from), priceOf(to)));
      await until("all calls have the next version", async () => {
        const versions = versionsOf(await lastTwenty());
        return versions.length === 1 && versions[0] === to;
      });
    };
    await publish(1, 2);
    const leader = (await leaders()).find(({ leads }) => leads)?.pid;
    process.kill(Number(leader), "SIGKILL");
    await until("another process leads", async () => {
      const found = await leaders();
      return found.length === 2 && found.some(({ leads, pid }) => leads && pid !== leader);
    });
    expect(versionsOf(await lastTwenty())).toEqual([2]);
    await publish(2, 3);
    const rows = await lastTwenty();
    const [tokens] = new Set(rows.map(({ cost_usd: cost }) => Number(cost) / 3e-6));
    expect(Number.isInteger(Number(tokens?.toFixed(6)))).toBe(true);
    const { versions } = (await admin("GET", "/prices")) as { versions: readonly unknown[] };
    expect(versions).toHaveLength(3);
  },
  90_000,
);
