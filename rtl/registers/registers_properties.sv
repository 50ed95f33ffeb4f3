bind penstock_registers penstock_axil_check i_axil_check (
    .clk_i,
    .rst_ni,
    `PENSTOCK_AXIL_CHECK_PORT(s_axil)
);
