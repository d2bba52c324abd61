import fc from "fast-check";
import { expect, test } from "bun:test";
import { addressReach } from "./image-address.ts";

test.each([
  "1.1.1.1",
  "8.8.8.8",
  "9.255.255.255",
  "11.0.0.0",
  "100.63.255.255",
  "100.128.0.0",
  "126.255.255.255",
  "128.0.0.0",
  "168.63.129.15",
  "169.253.255.255",
  "169.255.0.0",
  "172.15.255.255",
  "172.32.0.0",
  "192.0.1.0",
  "192.167.255.255",
  "192.169.0.0",
  "198.17.255.255",
  "198.20.0.0",
  "223.255.255.255",
  "2606:4700:4700::1111",
  "2001:4860:4860::8888",
  "2a00::1",
  "3ffe:ffff::1",
  "::ffff:8.8.8.8",
  "::ffff:808:808",
  "64:ff9b::8.8.8.8",
])("%s is public", (address) => {
  expect(addressReach(address)).toBe("public");
});

test.each([
  "10.0.0.0",
  "10.255.255.255",
  "100.64.0.0",
  "100.127.255.255",
  "127.0.0.1",
  "127.255.255.255",
  "172.16.0.0",
  "172.31.255.255",
  "192.168.0.0",
  "192.168.255.255",
  "::1",
  "0:0:0:0:0:0:0:1",
  "::0001",
  "fc00::",
  "fdff:ffff::1",
  "FD12:3456::1",
  "::ffff:127.0.0.1",
  "::ffff:7f00:1",
  "::FFFF:10.0.0.1",
  "0:0:0:0:0:ffff:c0a8:1",
  "64:ff9b::10.0.0.1",
  "64:ff9b::7f00:1",
])("%s is private", (address) => {
  expect(addressReach(address)).toBe("private");
});

test.each([
  "0.0.0.0",
  "0.255.255.255",
  "100.100.100.200",
  "168.63.129.16",
  "169.254.0.0",
  "169.254.169.254",
  "169.254.255.255",
  "192.0.0.1",
  "192.0.0.192",
  "192.0.2.1",
  "192.88.99.1",
  "198.18.0.0",
  "198.19.255.255",
  "198.51.100.7",
  "203.0.113.9",
  "224.0.0.1",
  "239.255.255.255",
  "240.0.0.1",
  "255.255.255.255",
  "::",
  "::127.0.0.1",
  "::ffff:0:127.0.0.1",
  "::ffff:169.254.169.254",
  "::ffff:a9fe:a9fe",
  "::ffff:0.0.0.0",
  "64:ff9b::169.254.169.254",
  "64:ff9b:1::10.0.0.1",
  "100::1",
  "2001::1",
  "2001:10::1",
  "2001:db8::1",
  "2002:7f00:1::",
  "2002:a9fe:a9fe::1",
  "2002:808:808::1",
  "3fff::1",
  "4000::1",
  "5f00::1",
  "fd00:ec2::254",
  "fd20:ce::254",
  "fe80::1",
  "fe80::1%eth0",
  "febf::1",
  "fec0::1",
  "ff02::1",
  "2606:4700:4700::1111%eth0",
])("nothing is read at %s", (address) => {
  expect(addressReach(address)).toBe("reserved");
});

test.each([
  "",
  "localhost",
  "example.com",
  "127.1",
  "0x7f.0.0.1",
  "0177.0.0.1",
  "2130706433",
  "1.1.1.1.1",
  "1.1.1.256",
  "1.1.1.1 ",
  "[::1]",
  "1::2::3",
  "12345::",
  ":::1",
  "１.1.1.1",
])("%p is no address", (text) => {
  expect(addressReach(text)).toBe("reserved");
});

/** Writes eight groups in full, without any shortening. */
function inFull(groups: readonly number[]): string {
  return groups.map((group) => group.toString(16).padStart(4, "0")).join(":");
}

const anyGroup = fc.integer({ min: 0, max: 0xffff });

test("an address means the same however it is written", () => {
  fc.assert(
    fc.property(fc.array(anyGroup, { minLength: 8, maxLength: 8 }), (groups) => {
      const full = inFull(groups);
      const shortened = new URL(`http://[${full}]/`).hostname.slice(1, -1);
      expect(addressReach(shortened)).toBe(addressReach(full));
      expect(addressReach(full.toUpperCase())).toBe(addressReach(full));
    }),
  );
});

test("an address in one of IPv4's carriers is judged as the address it carries", () => {
  const anyByte = fc.integer({ min: 0, max: 255 });
  const carriers = ["::ffff:", "64:ff9b::"];
  fc.assert(
    fc.property(fc.array(anyByte, { minLength: 4, maxLength: 4 }), (bytes) => {
      const address = bytes.join(".");
      for (const carrier of carriers) {
        expect(addressReach(carrier + address)).toBe(addressReach(address));
      }
    }),
  );
});

test("no address that looks like this machine or its network is ever public", () => {
  const anyByte = fc.integer({ min: 0, max: 255 });
  const inside = fc.oneof(
    fc.tuple(fc.constantFrom(0, 10, 127), anyByte, anyByte, anyByte),
    fc.tuple(fc.constant(192), fc.constant(168), anyByte, anyByte),
    fc.tuple(fc.constant(169), fc.constant(254), anyByte, anyByte),
    fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), anyByte, anyByte),
    fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), anyByte, anyByte),
    fc.tuple(fc.integer({ min: 224, max: 255 }), anyByte, anyByte, anyByte),
  );
  fc.assert(
    fc.property(inside, ([a, b, c, d]) => {
      const high = (a * 256 + b).toString(16);
      const low = (c * 256 + d).toString(16);
      const written = [
        `${a}.${b}.${c}.${d}`,
        `::ffff:${high}:${low}`,
        `64:ff9b::${high}:${low}`,
        `2002:${high}:${low}::1`,
        `::${high}:${low}`,
      ];
      for (const address of written) expect(addressReach(address)).not.toBe("public");
    }),
  );
});

test("IPv6 outside what is given out is never public", () => {
  fc.assert(
    fc.property(fc.array(anyGroup, { minLength: 8, maxLength: 8 }), (groups) => {
      const [first = 0] = groups;
      fc.pre(first < 0x2000 || first > 0x3fff);
      fc.pre(first !== 0 && first !== 0x64);
      expect(addressReach(inFull(groups))).not.toBe("public");
    }),
  );
});
