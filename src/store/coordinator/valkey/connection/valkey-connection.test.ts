import { expect, test } from "bun:test";
import { HeldAnswers } from "../../../../../test/support/held-answers.ts";
import {
  connectTo,
  describeWithValkey,
  startValkey,
} from "../../../../../test/support/valkey-server.ts";
import { nextTurn } from "../../../../domain/waiting/wait.ts";
import { scriptOf, ValkeyUnavailable, type ValkeyConnection } from "./valkey-connection.ts";

const echo = scriptOf("echo", "return {KEYS[1], tonumber(ARGV[1]), redis.call('TIME')[1] > '0'}");

describeWithValkey(() => {
  test("a script runs by its digest and is sent when the server does not know it", async () => {
    await using server = await startValkey();
    using connection = closing(await connectTo(server));
    expect(await connection.run(echo, ["{a}k"], ["7"])).toEqual(["{a}k", 7, 1]);
    await server.command("SCRIPT", "FLUSH");
    const many = Array.from({ length: 50 }, (_, index) =>
      connection.run(echo, ["{a}k"], [String(index)]),
    );
    expect((await Promise.all(many)).length).toBe(50);
    expect(await connection.run(echo, ["k"], ["x"])).toEqual(["k"]);
  });

  test("a server that refuses the password is not available, and says why", async () => {
    await using server = await startValkey(["--requirepass", "secret"]);
    using wrong = closing(await connectTo({ url: server.url.replace("//", "//:no@") }));
    expect(wrong.isUp).toBe(false);
    const error = await wrong.run(echo, ["k"], ["1"]).catch((reason: unknown) => reason);
    expect(String(error)).toContain("WRONGPASS");
    using right = closing(await connectTo({ url: server.url.replace("//", "//:secret@") }));
    expect(await right.run(echo, ["k"], ["1"])).toEqual(["k", 1, 1]);
  });

  test("a killed server fails commands at once, and the connection comes back by itself", async () => {
    await using server = await startValkey();
    using connection = closing(await connectTo(server));
    const changes: (string | undefined)[] = [];
    connection.onChange((reason) => void changes.push(reason));
    await server.kill();
    await until(() => !connection.isUp);
    expect(connection.run(echo, ["k"], ["1"])).rejects.toBeInstanceOf(ValkeyUnavailable);
    await server.start();
    await until(() => connection.isUp);
    expect(await connection.run(echo, ["k"], ["1"])).toEqual(["k", 1, 1]);
    expect(changes.slice(0, -1)).not.toContain(undefined);
    expect(changes.at(-1)).toBeUndefined();
  });

  test("a frozen server fails commands after the time-out, then at once", async () => {
    await using server = await startValkey();
    using connection = closing(await connectTo(server, { timeoutMs: 50 }));
    server.signal("SIGSTOP");
    while (connection.isUp) {
      const error = await connection.run(echo, ["k"], ["1"]).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(ValkeyUnavailable);
      await nextTurn();
    }
    server.signal("SIGCONT");
    await until(() => connection.isUp);
  });

  test("while an answer of a frozen server is late, decisions fail at once", async () => {
    await using server = await startValkey();
    using connection = closing(await connectTo(server, { timeoutMs: 400 }));
    const changes: (string | undefined)[] = [];
    connection.onChange((reason) => void changes.push(reason));
    server.signal("SIGSTOP");
    await connection.run(echo, ["k"], ["1"]).catch(() => undefined);
    expect(connection.isUp).toBe(true);
    const outcomes: string[] = [];
    const decision = scriptOf("decide", echo.text, { isDecision: true });
    void connection
      .run(decision, ["k"], ["2"])
      .catch((error: unknown) => outcomes.push(String(error)));
    const waiting = connection.run(echo, ["k"], ["2"]);
    await nextTurn();
    expect(outcomes).toEqual(["ValkeyUnavailable: an answer is late"]);
    server.signal("SIGCONT");
    expect(await waiting).toEqual(["k", 2, 1]);
    const answered = async () => connection.run(echo, ["k"], ["3"]).catch(() => undefined);
    while ((await answered()) === undefined) await Bun.sleep(10);
  });

  test("of two late answers, only one has to come for the connection to be given up", async () => {
    await using server = await startValkey();
    using relay = new HeldAnswers(server.port);
    using connection = closing(await connectTo(relay, { timeoutMs: 100 }));
    relay.hold();
    const first = connection.run(echo, ["k"], ["1"]).catch(() => undefined);
    await until(() => relay.held === 1);
    const second = connection.run(echo, ["k"], ["2"]).catch(() => undefined);
    await Promise.all([first, second]);
    // The other one never comes: the connection is half open.
    relay.passOne();
    await until(() => !connection.isUp);
    await until(() => connection.isUp);
    expect(await connection.run(echo, ["k"], ["3"])).toEqual(["k", 3, 1]);
  });

  test("a half-open connection of subscriptions is replaced", async () => {
    await using server = await startValkey();
    using relay = new HeldAnswers(server.port);
    using connection = closing(await connectTo(relay, { timeoutMs: 100 }));
    using other = closing(await connectTo(server));
    let heard = 0;
    connection.subscribe("news", () => (heard += 1));
    const tell = async (): Promise<void> => {
      const before = heard;
      while (heard === before) {
        await other.publish("news", "a");
        await Bun.sleep(20);
      }
    };
    await tell();
    relay.hold();
    await tell();
  });

  test("a demoted primary counts as down until it is promoted again", async () => {
    await using server = await startValkey();
    using connection = closing(await connectTo(server));
    const changes: (string | undefined)[] = [];
    connection.onChange((reason) => void changes.push(reason));
    const write = scriptOf("write", "return redis.call('SET', KEYS[1], '1')");
    await server.command("REPLICAOF", "127.0.0.1", "1");
    await connection.run(write, ["k"], []).catch(() => undefined);
    expect(connection.isUp).toBe(false);
    // Several probes find a replica.
    await Bun.sleep(700);
    expect(changes.at(-1)).toBe("it is a replica");
    const told = changes.length;
    await server.command("REPLICAOF", "NO", "ONE");
    await until(() => connection.isUp);
    await connection.run(write, ["k"], []);
    expect(changes.slice(told)).toEqual([undefined]);
  });

  test("an error of a script is thrown and does not count as a failure", async () => {
    await using server = await startValkey();
    using connection = closing(await connectTo(server));
    const wrong = scriptOf("wrong", "return redis.call('NOSUCHCOMMAND')");
    for (let run = 0; run < 8; run++) {
      const error = await connection.run(wrong, ["k"], []).catch((reason: unknown) => reason);
      expect(error).not.toBeInstanceOf(ValkeyUnavailable);
    }
    expect(connection.isUp).toBe(true);
  });

  test("messages reach the listeners of their channel, also after a restart", async () => {
    await using server = await startValkey();
    using one = closing(await connectTo(server));
    using other = closing(await connectTo(server));
    const heard: string[] = [];
    one.subscribe("first", (message) => void heard.push(`first ${message}`));
    const end = one.subscribe("second", (message) => void heard.push(`second ${message}`));
    const tell = async (channel: string, message: string): Promise<void> => {
      while (!heard.includes(`${channel} ${message}`)) {
        await other.publish(channel, message).catch(() => undefined);
        await Bun.sleep(20);
      }
    };
    await tell("first", "a");
    await tell("second", "b");
    await server.kill();
    await until(() => !one.isUp && !other.isUp);
    await server.start();
    await tell("first", "c");
    end();
    heard.length = 0;
    await other.publish("second", "d");
    await tell("first", "e");
    expect(heard.filter((message) => message.startsWith("second"))).toEqual([]);
  });
});

function closing(connection: ValkeyConnection): ValkeyConnection & Disposable {
  return Object.assign(connection, { [Symbol.dispose]: () => connection.close() });
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await Bun.sleep(10);
}
