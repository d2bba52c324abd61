import { expect, test } from "bun:test";
import { readProxies } from "./proxies.ts";

test("proxies are read in upper and in lower case, with their credentials", () => {
  expect(readProxies({})).toEqual({ forHttp: undefined, forHttps: undefined, except: [] });
  const variables = {
    HTTPS_PROXY: "http://user:p%40ss@proxy.internal:3128/",
    http_proxy: "proxy.internal",
    no_proxy: "Models.example, .internal  10.0.0.1",
  };
  expect(readProxies(variables)).toEqual({
    forHttps: {
      hostname: "proxy.internal",
      port: 3128,
      authorization: `Basic ${Buffer.from("user:p@ss").toString("base64")}`,
    },
    forHttp: { hostname: "proxy.internal", port: 80, authorization: undefined },
    except: ["models.example", ".internal", "10.0.0.1"],
  });
});

test("an address of IPv6 has no brackets, and an empty variable names no proxy", () => {
  const { forHttp, forHttps } = readProxies({
    HTTP_PROXY: "http://[fd00::1]:8080",
    HTTPS_PROXY: " ",
  });
  expect([forHttp?.hostname, forHttp?.port, forHttps]).toEqual(["fd00::1", 8080, undefined]);
});

test.each([
  "https://secret.internal",
  "socks5://secret.internal",
  "http://secret:99999",
  "http://",
])("a proxy that cannot be used is a problem, which does not quote it: %s", (HTTPS_PROXY) => {
  expect(() => readProxies({ HTTPS_PROXY })).toThrow(/^HTTPS_PROXY: must be(?!.*secret)/);
});
