import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { readLocalAccess } from "../../src/control/sign-in/bootstrap/local-access.ts";
import { makeProcessFolder } from "../failures/outage-process.ts";
import { until } from "../support/ledger-truth-process.ts";
import { startServing } from "../support/sluice-process.ts";
import { startValkey, valkeyProgram } from "../support/valkey-server.ts";
import { liveReader } from "./event-reader.ts";

interface Facts {
  readonly processes: readonly { readonly process: number }[];
  readonly gates: readonly { readonly name: string; readonly in_flight: number }[];
  readonly use: { readonly requests: { readonly used: number } } | null;
}

test.skipIf(valkeyProgram === null)(
  "two processes with threads: facts of both, one stream, calls as a key, and after the leader's death",
  async () => {
    await using limits = await startValkey();
    const settings = `limits: { store: "${limits.url}" }`;
    await using folder = makeProcessFolder({ processes: 2, settings });
    await using gateway = await startServing(["--config", folder.configPath]);
    const admin = (method: string, path: string, body?: unknown): Promise<Response> => {
      const { url, token } = readLocalAccess(folder.dataDir) ?? { url: "", token: "" };
      return fetch(`${url}/admin/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    };
    const factsAt = async (path: string) => (await (await admin("GET", path)).json()) as Facts;
    await until("both processes tell", async () => {
      return (await factsAt("/targets").catch(() => undefined))?.processes?.length === 2;
    });
    const account = (await (await admin("POST", "/accounts", { name: "a" })).json()) as {
      id: string;
    };
    const application = (await (
      await admin("POST", "/applications", {
        account_id: account.id,
        environment: "production",
        name: "x",
      })
    ).json()) as { id: string };
    const issued = (await (
      await admin("POST", "/keys", { application_id: application.id, plan: "standard" })
    ).json()) as { key: { id: string }; api_key: string };
    const body = {
      model: "chat-model",
      messages: [{ role: "user", content: "hi" }],
      max_tokens: 5,
    };
    const play = () => admin("POST", `/playground/chat/completions?key_id=${issued.key.id}`, body);
    const events = liveReader(await admin("GET", "/live?topics=processes,targets,gates"));
    expect((await events.next())?.event).toBe("full");
    await events.leave();
    for (let count = 1; count <= 3; count += 1) {
      const played = await play();
      expect([played.status, played.ok ? "" : await played.text()]).toEqual([200, ""]);
      const called = await fetch(`${gateway.dataUrl}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${issued.api_key}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      expect(called.status).toBe(200);
    }
    await until("all is counted together", async () => {
      return (await factsAt(`/keys/${issued.key.id}/live`)).use?.requests.used === 6;
    });
    const sockets = (): readonly string[] =>
      readdirSync(join(folder.dataDir, "processes")).filter((name) => name.endsWith(".calls"));
    expect(sockets()).toHaveLength(1);
    const processes = (await (await admin("GET", "/status")).json()) as {
      data: { leads: boolean; pid: number }[];
    };
    const leader = processes.data.find(({ leads }) => leads)?.pid;
    process.kill(Number(leader), "SIGKILL");
    await until("the next leader calls as keys, too", async () => {
      const played = await play().catch(() => undefined);
      return played?.status === 200;
    });
    await until("the socket of the dead one is gone", async () => {
      await factsAt("/targets");
      return !sockets().some((name) => name.includes(`-${leader}.`));
    });
  },
  60_000,
);
