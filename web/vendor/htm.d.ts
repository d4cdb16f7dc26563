declare const htm: {
  bind<Node>(
    create: (type: any, props: any, ...children: any[]) => Node,
  ): (strings: TemplateStringsArray, ...values: any[]) => Node | Node[];
};
export default htm;
