import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { quietPort } from "./free-port.ts";
import { authority, serverCertificate, serverKey } from "./tls-certificates.ts";
import { startValkey, valkeyProgram, type ValkeyServer } from "./valkey-server.ts";

/** Servers of Valkey or Redis in one of the forms that `limits.store` can name. */
export interface ValkeyForm extends AsyncDisposable {
  readonly url: string;
  readonly authorities?: string;
}

/** What `docs/operations.md` says that the user of a gateway needs. */
export const userRules =
  "resetkeys ~sluice:* resetchannels -@all +@scripting +@connection +info +time +cluster|slots " +
  "+get +set +del +pexpire +hgetall +hset +hdel";

export async function startWithUser(): Promise<ValkeyForm> {
  const rules = userRules.split(" ");
  const server = await startValkey(["--user", "gateway", "on", ">pass word", ...rules]);
  await server.command("ACL", "SETUSER", "default", "off");
  const url = server.url.replace("//", "//gateway:pass%20word@");
  return { url, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

export async function startWithTls(): Promise<ValkeyForm> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-tls-"));
  const fileOf = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const port = quietPort();
  const settings = ["--tls-port", String(port), "--tls-auth-clients", "no"];
  const files = [
    ["--tls-cert-file", fileOf("server.pem", serverCertificate)],
    ["--tls-key-file", fileOf("server.key", serverKey)],
    ["--tls-ca-cert-file", fileOf("ca.pem", authority)],
  ];
  const server = await startValkey([...settings, ...files.flat()]);
  return {
    url: `valkeys://127.0.0.1:${port}`,
    authorities: authority,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export interface ClusterForm extends ValkeyForm {
  readonly servers: readonly ValkeyServer[];
}

/** Three servers that divide the keys. */
export async function startCluster(): Promise<ClusterForm> {
  const servers: ValkeyServer[] = [];
  // By default 10,000 above the other ports, where an outgoing connection may have one.
  const busPorts = [quietPort(), quietPort(), quietPort()];
  const timeout = ["--cluster-node-timeout", "5000"];
  for (const busPort of busPorts) {
    const file = ["--cluster-config-file", `nodes-${busPort}.conf`];
    const bus = ["--cluster-port", String(busPort)];
    servers.push(await startValkey(["--cluster-enabled", "yes", ...bus, ...file, ...timeout]));
  }
  for (const [index, server] of servers.entries()) {
    const [first, last] = [index * 5_461, index === 2 ? 16_383 : (index + 1) * 5_461 - 1];
    await server.command("CLUSTER", "ADDSLOTSRANGE", String(first), String(last));
    for (const [other, { port }] of servers.entries()) {
      const ports = [String(port), String(busPorts[other])];
      await server.command("CLUSTER", "MEET", "127.0.0.1", ...ports);
    }
  }
  for (const server of servers) {
    const isReady = async (): Promise<boolean> => {
      const info = String(await server.command("CLUSTER", "INFO"));
      return /cluster_state:ok/.test(info) && /cluster_known_nodes:3/.test(info);
    };
    while (!(await isReady())) await Bun.sleep(20);
  }
  const hosts = servers.map(({ port }) => `127.0.0.1:${port}`);
  return {
    url: `valkey+cluster://${hosts.join(",")}`,
    servers,
    async [Symbol.asyncDispose]() {
      for (const server of servers) await server[Symbol.asyncDispose]();
    },
  };
}

export interface SentinelForm extends ValkeyForm {
  readonly primary: ValkeyServer;
  readonly replica: ValkeyServer;
}

/** A primary with a replica, and one Sentinel that replaces it. */
export async function startWithSentinel(): Promise<SentinelForm> {
  if (valkeyProgram === null) throw new Error("no Valkey or Redis server is installed");
  const primary = await startValkey();
  const replica = await startValkey(["--replicaof", "127.0.0.1", String(primary.port)]);
  while (!/master_link_status:up/.test(String(await replica.command("INFO", "replication")))) {
    await Bun.sleep(20);
  }
  const folder = mkdtempSync(join(tmpdir(), "sluice-sentinel-"));
  const port = quietPort();
  const path = join(folder, "sentinel.conf");
  // Long enough for five failures, half a second apart, before another server is the primary.
  writeFileSync(
    path,
    `port ${port}
bind 127.0.0.1
dir ${folder}
sentinel monitor limits 127.0.0.1 ${primary.port} 1
sentinel down-after-milliseconds limits 3000
sentinel failover-timeout limits 5000
`,
  );
  const output = { stdout: "ignore", stderr: "ignore" } as const;
  const sentinel = Bun.spawn([valkeyProgram, path, "--sentinel"], output);
  const knows = async (): Promise<boolean> => {
    const client = new Bun.RedisClient(`redis://127.0.0.1:${port}`, { autoReconnect: false });
    try {
      await client.connect();
      // Before it knows the replica, it could not replace the primary.
      return /slaves=1/.test(String(await client.send("INFO", ["sentinel"])));
    } catch {
      return false;
    } finally {
      client.close();
    }
  };
  while (!(await knows())) await Bun.sleep(20);
  return {
    // The first one does not run, as after the loss of a machine.
    url: `valkey+sentinel://127.0.0.1:${quietPort()},127.0.0.1:${port}/limits`,
    primary,
    replica,
    async [Symbol.asyncDispose]() {
      sentinel.kill("SIGKILL");
      await sentinel.exited;
      await primary[Symbol.asyncDispose]();
      await replica[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
