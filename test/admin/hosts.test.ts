import { afterAll, beforeAll, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";

const sections = {
  admin: `{ public_url: https://console.example.com:8443, hosts: [prom.internal, 10.0.0.0/8] }`,
};

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ sections });
});
afterAll(() => gateway[Symbol.asyncDispose]());

const ask = (path: string, host: string): Promise<Response> =>
  fetch(gateway.adminUrl + path, { headers: { host } });

const paths = [
  "/metrics",
  "/admin/v1/docs",
  "/admin/v1/openapi.json",
  "/admin/v1/sign-in",
  "/admin/v1/keys",
];

test("the admin listener answers to no host of which nobody told it, and says what to change", async () => {
  for (const host of ["evil.example", "127.0.0.1.nip.io:8081", "192.0.2.7", "[2001:db8::1]:80"]) {
    for (const path of paths) {
      const response = await ask(path, host);
      expect([host, path, response.status]).toEqual([host, path, 421]);
      const { error } = (await response.json()) as { error: { code: string; message: string } };
      expect(error.code).toBe("unknown_host");
      expect(error.message).toContain("admin.hosts");
    }
  }
});

test("it answers at loopback, at its public URL and where the operator says, on any port", async () => {
  const hosts = ["localhost", "127.0.0.1:1", "[::1]:8081", "LOCALHOST.", "console.example.com"];
  for (const host of [...hosts, "prom.internal:9090", "10.200.3.4:8081"]) {
    for (const path of paths) {
      const isForHolders = !(path === "/metrics" && host === "console.example.com");
      const expected = path === "/admin/v1/keys" ? 401 : isForHolders ? 200 : 421;
      expect([host, path, (await ask(path, host)).status]).toEqual([host, path, expected]);
    }
  }
});

test("metrics tell of all accounts, so where account holders sign in they are not answered unless the operator says so", async () => {
  const refused = await ask("/metrics", "console.example.com:8443");
  const { error } = (await refused.json()) as { error: { code: string; message: string } };
  expect([refused.status, error.code]).toEqual([421, "unknown_host"]);
  expect(error.message).toContain("admin.hosts");
  const admin = "{ public_url: https://console.example.com, hosts: [console.example.com] }";
  await using open = await startGateway({ sections: { admin } });
  const host = "console.example.com";
  expect((await fetch(`${open.adminUrl}/metrics`, { headers: { host } })).status).toBe(200);
});

test("probes are answered at any host, here and at the data listener", async () => {
  for (const path of ["/healthz", "/readyz"]) {
    expect((await ask(path, "192.0.2.7:8081")).status).toBe(200);
    expect((await fetch(gateway.url + path, { headers: { host: "192.0.2.7" } })).status).toBe(200);
  }
});

test("a listener that other machines reach without TLS is warned of at the start, and answers there", async () => {
  const listen = `{ data: "127.0.0.1:0", admin: "0.0.0.0:0" }`;
  await using open = await startGateway({ sections: { listen } });
  expect(open.log.filter((line) => line.includes("listen.admin: 0.0.0.0"))).toHaveLength(1);
  expect((await fetch(`${open.adminUrl}/metrics`)).status).toBe(200);
  expect(gateway.log.join("\n")).not.toContain("listen.admin");
});
