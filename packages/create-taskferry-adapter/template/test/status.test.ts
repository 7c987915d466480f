import { expect, it } from "vitest";
import { RUN_STATUS, statusOf } from "../src/status.js";

it.each(Object.entries(RUN_STATUS))("%s is %s", (native, status) => expect(statusOf(native)).toBe(status));

it.each(["hibernating", "toString", ""])("%j changes nothing", (native) => {
  expect(statusOf(native)).toBe("unchanged");
});
