import paddle

paddle.enable_compat()
