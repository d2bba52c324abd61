import { expect, test } from "bun:test";
import { quietPort } from "../../../../../test/support/free-port.ts";
import { otherAuthority } from "../../../../../test/support/tls-certificates.ts";
import {
  startCluster,
  startWithTls,
  startWithUser,
  userRules,
} from "../../../../../test/support/valkey-forms.ts";
import {
  connectTo,
  describeWithValkey,
  startValkey,
} from "../../../../../test/support/valkey-server.ts";

describeWithValkey(() => {
  test("a server that cannot be reached is told from one that refuses, by the reason", async () => {
    await using user = await startWithUser();
    await using tls = await startWithTls();
    await using plain = await startValkey();
    const nobody = `127.0.0.1:${quietPort()}`;
    const host = (url: string): string => url.replace(/^.*[@/]/, "");
    expect(await reasonAt(`valkey://${nobody}`)).toBe("the connection was refused");
    expect(await reasonAt(`valkeys://${nobody}`)).toBe("the connection was refused");
    expect(await reasonAt("valkey://no-such-host.invalid")).toMatch(/not found.*no-such-host/);
    const wrong = await reasonAt(user.url.replace("pass%20word", "hidden"));
    expect(wrong).toBe("WRONGPASS invalid username-password pair or user is disabled.");
    expect(await reasonAt(`valkey://${host(user.url)}`)).toMatch(/^NOAUTH /);
    expect(await reasonAt(tls.url, otherAuthority)).toMatch(/certificate is not accepted/);
    expect(await reasonAt(tls.url)).toMatch(/certificate is not accepted/);
    expect(await reasonAt(`valkey://${host(tls.url)}`)).toBe("it answers only with TLS");
    expect(await reasonAt(`valkeys://${host(plain.url)}`)).toBe("it answers only without TLS");
    plain.signal("SIGSTOP");
    expect(await reasonAt(plain.url)).toBe("no answer within 1000 ms");
    plain.signal("SIGCONT");
  });

  test("each of several servers has its reason", async () => {
    await using server = await startValkey();
    const nobody = `127.0.0.1:${quietPort()}`;
    const both = `valkey+sentinel://${nobody},127.0.0.1:${server.port}/limits`;
    const reason = await reasonAt(both);
    expect(reason).toContain(`${nobody}: the connection was refused; `);
    expect(reason).toContain(`127.0.0.1:${server.port}: ERR unknown command`);
    expect(await reasonAt(`valkey+cluster://${nobody}`)).toBe("the connection was refused");
  });

  test("a cluster that does not tell where keys are is not available until it does", async () => {
    await using cluster = await startCluster();
    const allow = async (rights: string): Promise<void> => {
      for (const server of cluster.servers) {
        await server.command("ACL", "SETUSER", "poor", "on", ">pass", ...rights.split(" "));
      }
    };
    await allow(userRules.replace(" +cluster|slots", ""));
    const connection = await connectTo({ url: cluster.url.replace("//", "//poor:pass@") });
    expect(connection.isUp).toBe(false);
    const ask = (): Promise<unknown> =>
      connection.send("k", "PING", []).catch((error: unknown) => String(error));
    expect(await ask()).toMatch(/NOPERM .*cluster\|slots/);
    await allow(userRules);
    while ((await ask()) !== "PONG") await Bun.sleep(10);
    expect(connection.isUp).toBe(true);
    connection.close();
  });

  test("a password is in no reason, even of a server that repeats what it does not know", async () => {
    using server = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { data: (socket, bytes) => void socket.end(`-NO ${bytes.toString()}\r\n`) },
    });
    const reason = await reasonAt(`valkey://:hidden@127.0.0.1:${server.port}`);
    expect(reason).toMatch(/^NO /);
    expect(reason).not.toContain("hidden");
  });

  test("while a server stays away, each new reason is told once", async () => {
    await using server = await startValkey(["--requirepass", "secret"]);
    const connection = await connectTo({ url: server.url.replace("//", "//:secret@") });
    const changes: (string | undefined)[] = [];
    connection.onChange((reason) => void changes.push(reason));
    await server.kill();
    const until = async (reason: string): Promise<void> => {
      while (!changes.some((change) => change?.startsWith(reason))) await Bun.sleep(10);
    };
    await until("the connection was refused");
    await server.start(["--requirepass", "another"]);
    await until("WRONGPASS");
    // Several more looks.
    await Bun.sleep(2_500);
    connection.close();
    expect(changes.filter((change) => change?.startsWith("WRONGPASS"))).toHaveLength(1);
    expect(changes).not.toContain(undefined);
  });
});

/** What a new connection tells after it has failed. */
async function reasonAt(url: string, authorities?: string): Promise<string> {
  const connection = await connectTo({ url }, { authorities });
  const error = await connection.send("k", "PING", []).catch((reason: unknown) => reason);
  connection.close();
  return error instanceof Error ? error.message : "none";
}
