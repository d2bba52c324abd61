import { afterAll, beforeAll, expect, test } from "bun:test";
import { quietPort } from "../support/free-port.ts";
import { startCluster, startWithTls, startWithUser, userRules } from "../support/valkey-forms.ts";
import { describeWithValkey, startValkey } from "../support/valkey-server.ts";
import { until } from "../support/ledger-truth-process.ts";
import { startServing } from "../support/sluice-process.ts";
import { otherAuthority } from "../support/tls-certificates.ts";
import { runHere } from "./run-here.ts";
import { createFolder, type SluiceFolder } from "./sluice-folder.ts";

let folder: SluiceFolder;
beforeAll(() => {
  folder = createFolder({ isOffline: true });
});
afterAll(() => folder[Symbol.dispose]());

interface Told {
  readonly exitCode: number;
  readonly text: string;
}

async function doctor(url: string, authorities?: string): Promise<Told> {
  return examine(await configure(url, authorities));
}

async function examine(path: string): Promise<Told> {
  const { exitCode, output } = await runHere(["doctor", "--no-targets", "--config", path]);
  return { exitCode, text: output.replaceAll(/\s+/g, " ") };
}

function configure(url: string, authorities?: string, place = folder): Promise<string> {
  const ca = authorities === undefined ? "" : `, ca: ${JSON.stringify(authorities)}`;
  return place.write(
    "sluice.yaml",
    `data_dir: ${place.path}/data
limits: { store: "${url}"${ca} }
listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
environments: [{ name: production, hosts: ["*"], models: ["*"] }]
upstreams: { server: { kind: openai, base_url: "http://127.0.0.1:9/v1", api_key: k } }
models:
  one: { kind: chat, context_window: 8000, max_output_tokens: 100, targets: [{ upstream: server, model: m }] }
auth: { peppers: ["a pepper for tests that is long enough"] }
`,
  );
}

test("a running gateway without its server of limits is told to be degraded, and by what", async () => {
  using own = createFolder({ isOffline: false });
  const path = await configure(`valkey://127.0.0.1:${quietPort()}`, undefined, own);
  const anyPort = ["--data", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
  await using _gateway = await startServing(["--config", path, ...anyPort]);
  const lack = "degraded: limits.store does not answer; limits are not shared To do: what is wrong";
  await until("doctor tells it", async () => (await examine(path)).text.includes(lack));
  expect((await examine(path)).text).toContain(`warning gateway process 1 is ${lack}`);
});

describeWithValkey(() => {
  test("a gateway never counts in another database than it was told", async () => {
    await using server = await startValkey(["--databases", "1"]);
    using own = createFolder({ isOffline: false });
    const path = await configure(`${server.url}/1`, undefined, own);
    const anyPort = ["--data", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    await using _gateway = await startServing(["--config", path, ...anyPort]);
    const lack = "degraded: limits.store does not answer";
    await until("doctor tells it", async () => (await examine(path)).text.includes(lack));
    expect((await examine(path)).text).toContain("database 1 cannot be used: ");
    expect(await server.command("KEYS", "*")).toEqual(["sluice:{0}:since"]);
  });

  test("a good server is told to be so, also for a user that has only the listed rights", async () => {
    await using form = await startWithUser();
    const { exitCode, text } = await doctor(form.url);
    expect(text).toMatch(/ok limits (Redis|Valkey) \S+ answers and decides/);
    expect(text).toMatch(/limits an answer of the server takes [\d.]+ ms/);
    expect(exitCode).toBe(0);
  });

  test("nothing is wrong while a gateway waits for a new server", async () => {
    await using server = await startValkey();
    await server.command("FLUSHALL");
    using own = createFolder({ isOffline: false });
    const path = await configure(server.url, undefined, own);
    const anyPort = ["--data", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    await using gateway = await startServing(["--config", path, ...anyPort]);
    const told =
      /note gateway process 1 is degraded: .* shared again at [\d:]{8} UTC, nothing is to/;
    await until("doctor tells it", async () => told.test((await examine(path)).text));
    const { exitCode, text } = await examine(path);
    expect(text).not.toMatch(/FAILED|warning/);
    expect(exitCode).toBe(0);
    expect(gateway.text()).toContain("the store of limits decides in a minute");
    expect(gateway.text()).not.toContain("ERROR");
  });

  test("what is wrong with a server is told, with what to do", async () => {
    const nobody = await doctor(`valkey://127.0.0.1:${quietPort()}`);
    expect(nobody.text).toContain("FAILED limits valkey://127.0.0.1:");
    expect(nobody.text).toContain("the connection was refused To do: start the server");
    expect(nobody.exitCode).toBe(1);

    await using user = await startWithUser();
    const wrong = await doctor(user.url.replace("pass%20word", "hidden-one"));
    expect(wrong.text).toMatch(/WRONGPASS .* To do: correct the user and the password/);
    expect(wrong.text).not.toContain("hidden-one");

    const name = await doctor("valkey://no-such-host.invalid");
    expect(name.text).toMatch(/host was not found .* To do: correct the host/);

    await using frozen = await startValkey();
    frozen.signal("SIGSTOP");
    expect((await doctor(frozen.url)).text).toMatch(/no answer .* is not stuck/);
    frozen.signal("SIGCONT");
    const encrypted = await doctor(frozen.url.replace("valkey", "valkeys"));
    expect(encrypted.text).toContain("only without TLS To do: write limits.store as valkeys://");

    const beyond = await doctor(`${frozen.url}/99`);
    expect(beyond.text).toMatch(
      /database 99 cannot be used: .*out of range To do: end limits.store with the number/,
    );
    expect(beyond.exitCode).toBe(1);

    await using evicting = await startValkey(["--maxmemory", "100mb"]);
    await evicting.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
    expect((await doctor(evicting.url)).text).toContain(
      "the server evicts keys (allkeys-lru) To do: set maxmemory-policy",
    );

    await using replica = await startValkey(["--replicaof", "127.0.0.1", String(evicting.port)]);
    expect((await doctor(replica.url)).text).toContain(
      "it is a replica To do: check the address in limits.store: of a primary",
    );
  });

  test("missing rights and unknown authorities are told", async () => {
    await using server = await startValkey();
    const rules = userRules.replace(" +hset", "").split(" ");
    await server.command("ACL", "SETUSER", "poor", "on", ">password", ...rules);
    const poor = await doctor(server.url.replace("//", "//poor:password@"));
    expect(poor.text).toMatch(/the server does not decide: .*can't run this command/);
    const blind = userRules.replace(" +info", "").split(" ");
    await server.command("ACL", "SETUSER", "blind", "on", ">password", ...blind);
    const uninformed = await doctor(server.url.replace("//", "//blind:password@"));
    expect(uninformed.text).toMatch(/NOPERM .*'info'.* To do: give the user .* the rights/);
    await using tls = await startWithTls();
    expect((await doctor(tls.url, otherAuthority)).text).toMatch(/FAILED limits .*certificate/i);
    expect((await doctor(tls.url, tls.authorities)).exitCode).toBe(0);
  });

  test("a plain server is not to be named as a cluster or as a Sentinel", async () => {
    await using server = await startValkey();
    const place = `127.0.0.1:${server.port}`;
    for (const [url, lack] of [
      [`valkey+cluster://${place}`, "cluster"],
      [`valkey+sentinel://${place}/primary`, "Sentinel"],
    ] as const) {
      const { text } = await doctor(url);
      expect(text).toContain(`the server is no ${lack} To do: write limits.store as valkey://`);
      expect(text).not.toContain("perhaps");
    }
  });

  test("a cluster is to be named as one", async () => {
    await using cluster = await startCluster();
    expect((await doctor(cluster.url)).exitCode).toBe(0);
    const [first] = cluster.url.replace("valkey+cluster://", "").split(",");
    const one = await doctor(`valkey://${first}`);
    expect(one.text).toContain("the server is part of a cluster To do: write limits.store as");
  });
});
