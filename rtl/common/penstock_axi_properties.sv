// What the AXI blocks of common promise on the bus.
bind penstock_axi_isolator penstock_axi_check #(
    .ID_BITS(ID_BITS)
) i_axi_check (
    .clk_i,
    .rst_ni,
    .off_i(1'b0),
    `PENSTOCK_AXI_CHECK_PORT(m_axi)
);
bind penstock_axi_mux penstock_axi_check #(
    .ID_BITS       (OUT_ID_BITS),
    .RESPONSES_STAY(1'b0)
) i_axi_check (
    .clk_i,
    .rst_ni,
    .off_i(1'b0),
    `PENSTOCK_AXI_CHECK_PORT(m_axi)
);
