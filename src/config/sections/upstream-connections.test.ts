import { expect, test } from "bun:test";
import * as certificates from "../../../test/support/tls-certificates.ts";
import { buildConnections, connectionsSchema, upstreamTls } from "./upstream-connections.ts";

const chain = `${certificates.gatewayCertificate}\n${certificates.authority}`;

test("certificates and keys are taken as texts, and the key is never printed", () => {
  const tls = upstreamTls.parse({
    ca: certificates.authority,
    certificate: chain,
    key: certificates.gatewayKey,
    server_name: "models.internal",
  });
  const connections = buildConnections(connectionsSchema("4s").parse({}), tls);
  expect(connections).toMatchObject({ idleMs: 4_000, ageMs: 300_000, mostIdle: 512 });
  expect(connections.tls).toMatchObject({ certificate: chain, serverName: "models.internal" });
  expect(connections.tls?.key?.reveal()).toBe(certificates.gatewayKey);
  expect(Bun.inspect(connections)).not.toContain("PRIVATE KEY");
});

test("connections are shared only between the same settings", () => {
  const connections = connectionsSchema("4s").parse({});
  const idOf = (tls: unknown) => buildConnections(connections, upstreamTls.parse(tls)).id;
  expect(idOf({ ca: certificates.authority })).toBe(idOf({ ca: certificates.authority }));
  const ids = [undefined, { ca: certificates.authority }, { ca: certificates.otherAuthority }];
  expect(new Set([...ids.map(idOf), idOf({ server_name: "a" })]).size).toBe(4);
});

test.each([
  ["a path", { ca: "/etc/ssl/ca.pem" }, "certificates in PEM format: the text, not a path"],
  ["a broken certificate", { ca: certificates.authority.replace("MII", "XXX") }, "PEM format"],
  ["a certificate as key", { certificate: chain, key: chain }, "private key in PEM format"],
  ["a certificate without a key", { certificate: chain }, "both certificate and key"],
  ["a key without a certificate", { key: certificates.gatewayKey }, "both certificate and key"],
  ["an address as name", { server_name: "https://models" }, "name of a host"],
])("%s is a problem", (_, written, problem) => {
  const result = upstreamTls.safeParse(written);
  expect(result.error?.issues.map(({ message }) => message).join("; ")).toContain(problem);
});
