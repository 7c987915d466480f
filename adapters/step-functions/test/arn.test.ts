import { describe, expect, it } from "vitest";
import {
  baseMachineArn,
  executionUrl,
  isRunOf,
  machineUrl,
  parseExecutionArn,
  parseMachineArn,
} from "../src/arn.js";

const HOME = "arn:aws:states:eu-west-1:123456789012";

describe("ARNs of machines", () => {
  it.each(["", ":7", ":PROD"])("may carry a qualifier: %j", (qualifier) => {
    const machine = parseMachineArn(`${HOME}:stateMachine:order${qualifier}`);
    expect(machine).toEqual({ home: HOME, partition: "aws", region: "eu-west-1", machine: "order" });
    expect(baseMachineArn(machine)).toBe(`${HOME}:stateMachine:order`);
  });

  it.each([
    "",
    "order",
    `${HOME}:activity:order`,
    "arn:aws:lambda:eu-west-1:123456789012:function:order",
    `${HOME}:stateMachine:`,
  ])("are not %j", (arn) => {
    expect(() => parseMachineArn(arn)).toThrow(expect.objectContaining({ code: "configuration" }));
  });
});

describe("ARNs of executions", () => {
  it.each([
    `${HOME}:execution:order:1`,
    `${HOME}:express:order:1:3f4e`,
    `${HOME}:execution:order/EachItem:1`,
  ])("belong to their machine: %s", (arn) => {
    expect(isRunOf(parseExecutionArn(arn), parseMachineArn(`${HOME}:stateMachine:order:PROD`))).toBe(true);
    expect(isRunOf(parseExecutionArn(arn), parseMachineArn(`${HOME}:stateMachine:orders`))).toBe(false);
    const other = HOME.replace("eu-west-1", "us-east-1");
    expect(isRunOf(parseExecutionArn(arn), parseMachineArn(`${other}:stateMachine:order`))).toBe(false);
  });

  it.each([undefined, 7, "", `${HOME}:stateMachine:order`, `${HOME}:execution:order`])(
    "are not %j",
    (arn) => {
      expect(parseExecutionArn(arn)).toBeUndefined();
    },
  );
});

describe("console pages", () => {
  it.each([
    ["aws", "eu-west-1", "https://eu-west-1.console.aws.amazon.com"],
    ["aws-cn", "cn-north-1", "https://cn-north-1.console.amazonaws.cn"],
    ["aws-us-gov", "us-gov-west-1", "https://us-gov-west-1.console.amazonaws-us-gov.com"],
  ])("are in %s's own console", (partition, region, origin) => {
    const home = `arn:${partition}:states:${region}:123456789012`;
    const arn = `${home}:execution:order:run-1`;
    expect(executionUrl(arn)).toBe(`${origin}/states/home?region=${region}#/v2/executions/details/${arn}`);
    const machine = parseMachineArn(`${home}:stateMachine:order:PROD`);
    expect(machineUrl(machine)).toBe(
      `${origin}/states/home?region=${region}#/statemachines/view/${home}:stateMachine:order`,
    );
  });

  it("are not guessed in a partition whose console is not known", () => {
    expect(executionUrl("arn:aws-iso:states:us-iso-east-1:123456789012:execution:order:1")).toBeUndefined();
  });

  it("are URLs whatever the execution's name", () => {
    expect(URL.canParse(executionUrl(`${HOME}:execution:order:ä+b`) ?? "")).toBe(true);
  });
});
